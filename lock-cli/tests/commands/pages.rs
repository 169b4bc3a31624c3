//! What the pages show: `docs/stores` the promises that `distlock stores` prints, and
//! `docs/operators.md` what `distlock ls` and `distlock show` print.

use lock_core::{keep::limits::DEFAULT_TTL, validity::margin};

use crate::{place::Place, stores::on_every_store};

on_every_store!(its_page_shows_its_promises);

const PAGES: [(&str, &str); 7] = [
    ("memory", include_str!("../../../docs/stores/memory.md")),
    ("sqlite", include_str!("../../../docs/stores/sqlite.md")),
    ("etcd", include_str!("../../../docs/stores/etcd.md")),
    ("redis", include_str!("../../../docs/stores/redis.md")),
    ("zookeeper", include_str!("../../../docs/stores/zookeeper.md")),
    ("postgres", include_str!("../../../docs/stores/sql.md")),
    ("redlock", include_str!("../../../docs/stores/redlock.md")),
];

/// The rows that depend on the version or the settings of a server.
const OF_THE_SERVER: [&str; 3] = ["a holder may be told after the next grant if", "TTL", "caution"];

fn its_page_shows_its_promises(place: &Place) {
    the_page_shows_the_promises(place, place.store());
}

#[test]
fn memory_shows_its_promises() {
    the_page_shows_the_promises(&Place::new(), "memory:");
}

/// Its commits reach the disk, as on a server in use.
#[cfg(feature = "postgres")]
#[test]
fn postgres_shows_its_promises() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = lock_lab::Postgres::builder().durable().start();
    let server = runtime.block_on(server).expect("a server");
    the_page_shows_the_promises(&Place::new(), &server.url());
}

#[cfg(feature = "redis")]
#[test]
fn redlock_shows_its_promises() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let servers = runtime.block_on(lock_lab::IndependentRedis::start(5)).expect("five servers");
    let hosts: Vec<_> = servers.addrs().iter().map(ToString::to_string).collect();
    the_page_shows_the_promises(&Place::new(), &format!("redlock://{}", hosts.join(",")));
}

fn the_page_shows_the_promises(place: &Place, url: &str) {
    let (code, promises, error) = place.run(&["stores", "--store", url]);
    assert_eq!(code, Some(0), "{error}");
    let scheme = url.split(':').next().unwrap();
    let (_, page) = PAGES.iter().find(|(store, _)| *store == scheme).expect("a page");
    let (_, shown) = page.split_once("\n## What it promises\n").expect("the heading");
    let (_, shown) = shown.split_once("```text\n").expect("a block");
    let (shown, _) = shown.split_once("\n```").expect("its end");
    let is_fixed = matches!(scheme, "memory" | "sqlite");
    let rows = promises.lines().skip_while(|row| !row.starts_with("kinds")).filter(|row| {
        let varies = OF_THE_SERVER.iter().any(|label| row.starts_with(label));
        !row.starts_with(".. are above") && (is_fixed || !varies)
    });
    let mut compared = 0;
    for row in rows {
        assert!(shown.lines().any(|line| line == row.trim_end()), "not on the page: {row:?}");
        compared += 1;
    }
    assert!(compared >= 8, "{promises}");
}

const RUNBOOK: &str = include_str!("../../../docs/operators.md");
const COMMANDS: &str = include_str!("../../../docs/cli.md");

/// The same lines in the same order, other than names, numbers and times.
#[test]
fn operators_see_what_their_page_shows() {
    let place = Place::new();
    let run = ["run", "nightly", "--", "sh", "-c", "echo; read line"];
    let mut holder = place.start(&run);
    holder.line();
    let _waiter = place.start(&run);
    place.await_waiters("nightly", 1);
    for command in [&["ls"] as &[&str], &["show", "nightly"]] {
        let (code, printed, error) = place.run(command);
        assert_eq!(code, Some(0), "{error}");
        // The heading names the store. Without a terminal it is on stderr.
        let printed: Vec<_> = printed.lines().map(shape).collect();
        assert_eq!(on_the_page(&command.join(" ")), printed, "{command:?}");
    }
}

/// Where nobody sets a TTL, the pages name the times.
#[test]
fn times_are_those_of_the_usual_ttl() {
    let (ttl, half) = (DEFAULT_TTL.as_secs(), (DEFAULT_TTL / 2).as_secs_f64());
    let grace = (DEFAULT_TTL / 3 - margin(DEFAULT_TTL)).as_secs_f64();
    for (page, text) in [
        (RUNBOOK, format!("over half of the TTL ({half} s, if nobody set one)")),
        (RUNBOOK, format!("one TTL of the former holder, {ttl} s if nobody set it")),
        (COMMANDS, format!("the longest that fits: {grace} s of the usual TTL of {ttl} s")),
    ] {
        assert!(page.contains(&text), "not on the page: {text}");
    }
}

/// What the page shows below a command, without the heading.
fn on_the_page(command: &str) -> Vec<String> {
    let (_, shown) = RUNBOOK.split_once(&format!("$ distlock {command}\n")).expect("the command");
    let shown = shown.lines().take_while(|line| !line.starts_with(['$', '`']));
    shown.skip(1).map(shape).collect()
}

/// A fact's label, the headings of a table, or the words up to a process.
fn shape(line: &str) -> String {
    let label = if line.starts_with("    ") { line.get(..14) } else { line.split(" pid ").next() };
    label.unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}
