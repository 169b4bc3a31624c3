//! Several processes draw invoice numbers.

use std::path::Path;

use tempfile::tempdir;

use crate::{
    examples::{Try, program::Program},
    support::{Store, connect, eventually},
};

pub const TRIES: &[Try] = &[
    ("tool_draws_no_number_twice", |store| Box::pin(draws_no_number_twice(store))),
    ("tool_names_the_holder", |store| Box::pin(names_the_holder(store))),
    ("tool_goes_on_after_a_kill", |store| Box::pin(goes_on_after_a_kill(store))),
];

fn draw(store: &str, file: &Path, options: &[&str]) -> Program {
    Program::start("tool", [&[store, file.to_str().unwrap()], options].concat())
}

fn numbers(tool: &Program) -> Vec<u64> {
    tool.out().iter().map(|line| line.parse().expect("a number")).collect()
}

async fn draws_no_number_twice(store: &str) {
    let (store, folder) = (Store::open(store).await, tempdir().unwrap());
    let file = folder.path().join("invoices");
    let mut tools: Vec<_> =
        (0..4).map(|_| draw(&store.url(), &file, &["--count", "25", "--wait", "60"])).collect();
    let mut drawn = Vec::new();
    for tool in &mut tools {
        assert!(tool.end().await.success());
        let own = numbers(tool);
        assert!(own.is_sorted() && own[24] == own[0] + 24, "others drew meanwhile: {own:?}");
        drawn.extend(own);
    }
    drawn.sort_unstable();
    assert_eq!(drawn, (1..=100).collect::<Vec<_>>());
}

async fn names_the_holder(store: &str) {
    let (store, folder) = (Store::open(store).await, tempdir().unwrap());
    let file = folder.path().join("invoices");
    let locks = connect(&store.url()).await;
    let held = locks.lock("invoices").unwrap().holder("the auditor").acquire().await.unwrap();
    let mut tool = draw(&store.url(), &file, &["--wait", "1"]);
    assert_eq!(tool.end().await.code(), Some(75));
    assert!(tool.err().contains("the auditor"), "{}", tool.err());
    assert!(tool.out().is_empty() && !file.exists());
    held.release().await.unwrap();
    assert!(draw(&store.url(), &file, &[]).end().await.success());
}

async fn goes_on_after_a_kill(store: &str) {
    let (store, folder) = (Store::open(store).await, tempdir().unwrap());
    let (url, file) = (format!("{}?ttl=4s", store.url()), folder.path().join("invoices"));
    let mut killed = draw(&url, &file, &["--count", "1000000000"]);
    eventually("it draws", async || killed.out().len() > 3).await;
    killed.signal("-KILL");
    assert!(!killed.end().await.success());
    let mut next = draw(&url, &file, &["--count", "5", "--wait", "60"]);
    assert!(next.end().await.success());
    let (last, next) = (*numbers(&killed).last().unwrap(), numbers(&next));
    // One number may have been written but not printed.
    assert!(next[0] == last + 1 || next[0] == last + 2, "{} after {last}", next[0]);
    assert_eq!(next, (next[0]..next[0] + 5).collect::<Vec<_>>());
}
