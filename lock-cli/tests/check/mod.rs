//! `distlock check` beside other clients on real stores: its results for stores that keep their
//! promises, that promise less, and for one that breaks them.

mod answer;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis"))]
mod rights;

use answer::{Answer, check};
use rustix::process::Signal;

use crate::place::Place;

/// These need a server of their own.
const FOREIGN: [&str; 5] = [
    "fencing: across_deletion",
    "fencing: across_restart",
    "loss: told_when_deleted",
    "reconnect: while_holding",
    "reconnect: while_waiting",
];

/// Everything that can be checked on a store in use is kept.
fn keeps_all(place: &Place) {
    let answer = keeps(place, &[]);
    // A session of ZooKeeper cannot be left to another process.
    let detach: &[_] = match place.store().starts_with("zookeeper") {
        true => &[
            "detach: a_lost_answer_costs_nothing",
            "detach: free_if_nobody_takes_it_up",
            "detach: handed_on_and_revoked",
            "detach: outlives_who_left_it",
            "detach: taken_up_by_another",
            "detach: taken_up_once",
        ],
        false => &[],
    };
    assert_eq!(answer.verdicts("not_checked"), [detach, &FOREIGN].concat());
    assert!(answer.verdicts("kept").len() > 50, "{answer:?}");
}

/// No promise is broken. Locks and names of others stay.
fn keeps(place: &Place, arguments: &[&str]) -> Answer {
    let mut other = place.start(&["hold", "somebody/else"]);
    assert!(other.line().starts_with("holding "));
    let before = place.names();
    let answer = check(place, &[&["--json"], arguments].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.verdicts("broken"), Vec::<String>::new());
    assert_eq!(place.names(), before);
    assert_eq!(before, ["somebody/else"]);
    // The same process has held it all the time.
    other.signal(Signal::TERM);
    assert_eq!(other.end(), Some(0));
    answer
}

/// The driver is PostgreSQL's, so less is enough: what cuts clients off, and what cannot be checked.
#[test]
#[cfg(feature = "mysql")]
fn mariadb_keeps_all() {
    if lock_lab::in_a_long_run() {
        return crate::stores::on("mysql", keeps_all);
    }
    crate::stores::on("mysql", |place| {
        let wanted = ["fencing", "liveness", "loss", "reconnect"];
        let wanted: Vec<_> = wanted.into_iter().flat_map(|name| ["--property", name]).collect();
        let answer = keeps(place, &wanted);
        assert_eq!(answer.verdicts("not_checked"), FOREIGN);
        assert!(answer.verdicts("kept").len() > 8, "{answer:?}");
    });
}

macro_rules! all_is_kept {
    ($($feature:literal $name:ident;)*) => {$(
        #[test]
        #[cfg(feature = $feature)]
        fn $name() {
            crate::stores::on($feature, keeps_all);
        }
    )*};
}

all_is_kept!(
    "sqlite" sqlite_keeps_all;
    "redis" redis_keeps_all;
    "etcd" etcd_keeps_all;
    "zookeeper" zookeeper_keeps_all;
    "postgres" postgres_keeps_all;
);

/// The certificate names the server. The proxies in front of it, which cut clients off, have another
/// name.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn clients_with_tls_are_cut_off_as_well() {
    let authority = lock_lab::Authority::new().unwrap();
    let issued = authority.server(&["localhost"]).unwrap();
    let builder = lock_lab::Redis::builder().appendonly(false);
    let server = builder.tls(issued.certificate(), issued.key()).start().await.unwrap();
    let (port, ca) = (server.addr().port(), authority.file().display());
    let url = format!("rediss://localhost:{port}?ca={ca}");
    let check =
        move || check(&Place::new(), &["--json", "--store", &url, "--property", "liveness"]);
    let answer = tokio::task::spawn_blocking(check).await.unwrap();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.verdicts("not_checked"), Vec::<String>::new());
    assert_eq!(answer.verdicts("kept_in_part"), Vec::<String>::new());
}

/// A database's client library checks the certificate for the host alone, so it takes no proxy.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "postgres")]
async fn clients_of_a_database_with_tls_cannot_be_cut_off() {
    let authority = lock_lab::Authority::new().unwrap();
    let issued = authority.server(&["localhost"]).unwrap();
    let builder = lock_lab::Postgres::builder();
    let server = builder.tls(issued.certificate(), issued.key()).start().await.unwrap();
    let url = server.url().replace("127.0.0.1", "localhost");
    let (more, ca) = (if url.contains('?') { '&' } else { '?' }, authority.file().display());
    let url = format!("{url}{more}tls=verify&ca={ca}");
    // A try of the program ends within 5 s, and the first one on a busy machine takes longer.
    let warm = distlock::connect(&url).retry(std::time::Duration::from_secs(60)).await.unwrap();
    warm.close().await.unwrap();
    let check =
        move || check(&Place::new(), &["--json", "--store", &url, "--property", "liveness"]);
    let answer = tokio::task::spawn_blocking(check).await.unwrap();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let why = r#""uncut":"cannot be reached through a proxy"#;
    assert!(answer.out.contains(why) && answer.out.contains("another host name"), "{answer:?}");
}

/// Settings that weaken locks are told, and break no promise.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn what_weakens_locks_is_told() {
    let builder = lock_lab::Redis::builder().appendonly(false);
    let server = builder.arg("--maxmemory-policy").arg("allkeys-lru").start().await.unwrap();
    let store = server.url();
    let (text, json) = tokio::task::spawn_blocking(move || {
        let names = ["--store", &store, "--property", "names"];
        let text = check(&Place::new(), &names);
        (text, check(&Place::new(), &[&names as &[&str], &["--json"]].concat()))
    })
    .await
    .unwrap();
    assert_eq!((text.code, json.code), (Some(0), Some(0)), "{text:?}");
    let reports: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let cautions = reports[0]["cautions"].as_array().unwrap();
    assert_eq!(cautions.len(), 2, "{cautions:?}");
    for (caution, word) in cautions.iter().zip(["maxmemory-policy", "appendonly"]) {
        let caution = caution.as_str().unwrap();
        assert!(caution.contains(word), "{cautions:?}");
        assert!(text.out.contains(&format!(": caution: {caution}\n")), "{text:?}");
    }
}

/// Less is promised, and nothing is broken.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn missing_promises_are_not_checked() {
    let server = lock_lab::Redis::start().await.unwrap();
    let store = format!("{}?mode=simple", server.url());
    let check = move || {
        let place = Place::new();
        let wanted = ["--property", "fairness", "--property", "sharing", "--property", "fencing"];
        check(&place, &[&["--json", "--store", &store], &wanted as &[&str]].concat())
    };
    let answer = tokio::task::spawn_blocking(check).await.unwrap();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.verdicts("kept"), ["fencing: across_expiry", "fencing: across_release"]);
    assert!(answer.out.contains("promises no order in this mode"), "{answer:?}");
}

/// An eviction, or an operator: all data of the server is deleted all the time.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn a_server_that_forgets_breaks_its_promises() {
    let server = lock_lab::Redis::start().await.unwrap();
    let store = server.url();
    let check = tokio::task::spawn_blocking(move || {
        check(&Place::new(), &["--store", &store, "--property", "renewal", "--property", "loss"])
    });
    while !check.is_finished() {
        server.command(&[b"FLUSHALL"]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let answer = check.await.unwrap();
    assert_eq!(answer.code, Some(80), "{answer:?}");
    let renewal = answer.out.lines().find(|line| line.starts_with("A lock lasts")).unwrap();
    assert!(renewal.ends_with("NO"), "{answer:?}");
    for said in ["  outlives its ttl", "NO: lost although nothing was wrong", "BREAKS"] {
        assert!(answer.out.contains(said), "{answer:?}");
    }
}

/// Leftovers are looked up by name: others may have millions of keys, which a list would go
/// through.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn keys_of_others_are_not_listed() {
    let server = lock_lab::Redis::start().await.unwrap();
    let store = server.url();
    let check = move || {
        let wanted = ["--property", "cancellation", "--property", "try_acquire"];
        check(&Place::new(), &[&["--store", &store], &wanted as &[&str]].concat())
    };
    let answer = tokio::task::spawn_blocking(check).await.unwrap();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let calls = server.command(&[b"INFO", b"commandstats"]).await.unwrap();
    assert!(calls.contains("cmdstat_eval") && !calls.contains("cmdstat_scan"), "{calls}");
}

/// A server that is gone has broken no promise.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn a_server_that_is_gone_breaks_no_promise() {
    let server = lock_lab::Redis::start().await.unwrap();
    let store = server.url();
    let check = tokio::task::spawn_blocking(move || {
        check(&Place::new(), &["--json", "--store", &store, "--property", "renewal"])
    });
    let started = |key: &Vec<u8>| String::from_utf8_lossy(key).contains("renewed-");
    while !server.keys().await.unwrap().iter().any(started) {}
    server.kill();
    let answer = check.await.unwrap();
    assert_eq!(answer.code, Some(69), "{answer:?}");
    assert_eq!(answer.verdicts("broken"), Vec::<String>::new(), "{answer:?}");
}

#[test]
fn a_store_out_of_reach_does_not_hide_the_others() {
    let place = Place::new();
    let (file, gone) = (place.store(), "sqlite:/proc/none/db");
    let answer = check(&place, &["--store", gone, "--property", "names"]);
    assert!(answer.code == Some(78) && answer.out.is_empty(), "{answer:?}");
    let stores = ["--store", gone, "--store", file];
    let answer = check(&place, &[&stores as &[&str], &["--property", "fencing"]].concat());
    assert_eq!(answer.code, Some(78), "{answer:?}");
    let row = answer.out.lines().nth(1).unwrap_or_default();
    let in_part = "in part: 2 of 4 checks";
    assert!(row.starts_with("Fencing tokens rise") && row.ends_with(in_part), "{answer:?}");
    for said in
        ["not checked: needs a server of its own", "none/db: not checked", "keeps the one promise"]
    {
        assert!(answer.out.contains(said), "{answer:?}");
    }
    let both = check(&place, &["--store", file, "--store", file, "--property", "fairness"]);
    assert!(both.code == Some(0), "{both:?}");
    let yes = |line: &str| line.matches(" yes").count() == 2;
    assert!(both.out.lines().any(yes), "{both:?}");
}

/// In one process, nothing can be cut off. The result says so, and does not count that as kept.
#[test]
#[cfg(feature = "memory")]
fn without_a_network_there_are_no_faults() {
    let answer = check(&Place::new(), &["--json", "--store", "memory:", "--property", "liveness"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.verdicts("kept"), ["liveness: holder_dropped"]);
    assert!(answer.out.contains("no network that could be cut"), "{answer:?}");
    assert!(answer.out.contains(r#""verdict":"kept_in_part""#), "{answer:?}");
    assert!(answer.out.contains(r#""uncut":"there is no network"#), "{answer:?}");
    let table = check(&Place::new(), &["--store", "memory:", "--property", "liveness"]);
    for said in ["in part: 1 of 3 checks", "keeps the one promise that was checked; 1 of them"] {
        assert!(table.out.contains(said), "{table:?}");
    }
}

#[test]
fn a_signal_leaves_nothing() {
    let place = Place::new();
    let mut check = place.start(&["check"]);
    while !place.names().iter().any(|name| name.starts_with("distlock-check.")) {
        assert_eq!(check.try_end(), None, "it ended before anything was locked");
    }
    // SIGINT may be ignored where the tests run: as in the background of a shell.
    check.signal(Signal::TERM);
    assert_eq!(check.end(), Some(143));
    assert_eq!(place.names(), Vec::<String>::new());
}

/// Without a reader of stdout, the exit code still has the verdict.
#[test]
fn a_closed_stdout_hides_no_verdict() {
    let place = Place::new();
    let file = place.store();
    let stores = ["--store", "sqlite:/proc/none/db", "--store", file];
    let mut check = place.command(&["check", "--property", "fairness"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let end = check.args(stores).stdout(writer).status().expect("it starts");
    assert_eq!(end.code(), Some(78));
}

#[test]
fn wrong_usage_is_refused() {
    let place = Place::new();
    let twice = place.run(&["ls", "--store", "memory:", "--store", "memory:"]);
    assert!(twice.0 == Some(64) && twice.2.contains("only `check`"), "{twice:?}");
    for command in ["check", "stores"] {
        let split = place.run(&["--store", "memory:", command, "--store", "sqlite:"]);
        assert!(split.0 == Some(64) && split.2.contains("before and after"), "{split:?}");
    }
    let unknown = check(&place, &["--property", "immortality"]);
    assert!(unknown.code == Some(64) && unknown.error.contains("immortality"), "{unknown:?}");
}
