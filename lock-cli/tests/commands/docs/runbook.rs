//! The steps of `docs/operators.md`, and the token floor of `docs/tokens.md`.

use std::fs;

use super::{
    block, blocks,
    scene::{bash, printed},
};
use crate::{
    commands::{run::until, terminal::Terminal},
    place::{Place, Process},
};

const PAGE: &str = "docs/operators.md";
const LAST: &str = "$ distlock show nightly";

#[test]
fn an_operator_frees_a_lock() {
    let place = Place::new();
    let script = "echo $DISTLOCK_TOKEN; read line";
    let mut holder = place.start(&["run", "nightly", "--", "sh", "-c", script]);
    let token: u64 = holder.line().parse().expect("a token");
    let mut waiter = place.start(&["hold", "nightly"]);
    place.await_waiters("nightly", 1);

    let store = block(PAGE, "export DISTLOCK_STORE=");
    let store = store.replace("postgres://app@10.0.0.1/app", place.store());
    let evidence = block(PAGE, "nightly.before.json");
    // The operator's shell stays open until the lock is free.
    let mut shell = bash(&place, &format!("{store}\n{evidence}\nread -r _; kill $!"));
    shell.env_remove("DISTLOCK_STORE");
    let mut shell = Process::of(shell);
    let kept = |name: &str| fs::read_to_string(place.path().join(name)).unwrap_or_default();
    let before = || serde_json::from_str::<serde_json::Value>(&kept("nightly.before.json")).ok();
    let changes = || kept("nightly.changes.json").lines().count();
    until("the evidence is kept", || before().is_some() && changes() > 0);
    let before = before().expect("JSON");
    let attempt = before["holders"][0]["attempt"].as_str().expect("an attempt");

    revokes(&place, attempt);
    assert_eq!(holder.end(), Some(79));
    assert!(waiter.line().starts_with("holding nightly with token "));
    until("the change is kept", || changes() > 1);
    shell.say("\n");
    assert_eq!(shell.end(), Some(0));

    assert!(blocks().iter().any(|block| block.page == PAGE && block.text == LAST), "{LAST}");
    let shown = printed(bash(&place, LAST.trim_start_matches("$ ")));
    let next = shown.lines().find_map(|line| line.trim().strip_prefix("token ")).expect(&shown);
    assert!(next.trim().parse::<u64>().expect("a number") > token, "{shown}");
}

/// At a terminal, as the page shows it: the question, and the answer.
fn revokes(place: &Place, attempt: &str) {
    let shown = block(PAGE, "$ distlock revoke");
    let (command, asked) = shown.split_once('\n').expect("the question");
    let (question, _) = asked.split_once(" pid ").expect("the holder");
    let (_, answer) = asked.rsplit_once("? [y/N] ").expect("the answer");
    let command = command.trim_start_matches("$ ").replace("54c4cafc", &attempt[..8]);
    let mut terminal = Terminal::open(place);
    terminal.press(&format!("{command}\n"));
    terminal.until(question);
    terminal.until("? [y/N] ");
    terminal.press(&format!("{answer}\n"));
    terminal.press("echo code=$?=\n");
    terminal.until("code=0=");
}

#[cfg(all(feature = "etcd", feature = "redis"))]
#[test]
fn an_operator_raises_the_token_floor() {
    let [etcd, redis] = ["etcd", "redis"].map(crate::stores::open);
    let place = Place::on(redis.url());
    let token = |store: &str| -> u64 {
        let script = ["--", "sh", "-c", "echo $DISTLOCK_TOKEN"];
        let run = [&["run", "x", "--store", store] as &[&str], &script].concat();
        let (code, token, error) = place.run(&run);
        assert_eq!(code, Some(0), "{error}");
        token.trim().parse().expect("a token")
    };
    let old = token(&redis.url());
    let lines = block("docs/tokens.md", "token-floor").replace("$ ", "");
    let lines = lines.replace("etcd://10.0.0.1", &etcd.url());
    let shown = printed(bash(&place, &lines.replace("redis://10.0.0.2", &redis.url())));
    assert!(token(&etcd.url()) > old, "{shown}");
    assert!(token(&redis.url()) > 1_765_000_000_000_000, "{shown}");
}
