//! Several workers share a bank.

use std::{fs, path::Path};

use distlock::Locks;
use tempfile::tempdir;

use crate::{
    examples::{Try, program::Program},
    support::{Store, connect, eventually},
};

pub const TRIES: &[Try] = &[
    ("workers_lose_no_money", |store| Box::pin(lose_no_money(store))),
    ("worker_gives_up_and_says_why", |store| Box::pin(gives_up_and_says_why(store))),
    ("worker_leaves_nothing_at_a_signal", |store| Box::pin(leaves_nothing_at_a_signal(store))),
];

/// The accounts of the example.
const ACCOUNTS: u64 = 5;

fn work(store: &str, bank: &Path, options: &[&str]) -> Program {
    Program::start("worker", [&[store, bank.to_str().unwrap()], options].concat())
}

fn balances(bank: &Path) -> Vec<i64> {
    let balance = |account| {
        let text = fs::read_to_string(bank.join(format!("account-{account}"))).expect("an account");
        text.parse().expect("a balance")
    };
    (0..ACCOUNTS).map(balance).collect()
}

/// The balances after each of `workers` workers has done all of its jobs.
fn expected(workers: i64, jobs: u64) -> Vec<i64> {
    let mut balances = vec![100; ACCOUNTS as usize];
    for job in (0..jobs).filter(|job| job % 8 > 2) {
        balances[(job % ACCOUNTS) as usize] -= workers;
        balances[((job + 1 + job / 8 % 4) % ACCOUNTS) as usize] += workers;
    }
    balances
}

/// Each worker checks the rates and the gateway, and fails if they are wrong.
async fn lose_no_money(store: &str) {
    let (store, folder) = (Store::open(store).await, tempdir().unwrap());
    let options = ["--jobs", "40", "--wait", "60000", "--limit", "60000", "--log", "info"];
    let mut workers: Vec<_> = (0..3).map(|_| work(&store.url(), folder.path(), &options)).collect();
    for worker in &mut workers {
        assert!(worker.end().await.success());
        assert_eq!(worker.out(), ["40 of 40 jobs done"]);
        // A transfer holds the rates and two accounts.
        let granted = worker.err().matches("job{job=3}: distlock: granted").count();
        assert_eq!(granted, 3, "{}", worker.err());
    }
    assert_eq!(balances(folder.path()), expected(3, 40));
    assert!(connect(&store.url()).await.names("").await.unwrap().is_empty());
}

/// Two of eight jobs need the account that is held throughout the test.
async fn gives_up_and_says_why(store: &str) {
    let (store, folder) = (Store::open(store).await, tempdir().unwrap());
    let locks = connect(&store.url()).await;
    let account = locks.lock("bank/account-0").unwrap().holder("the auditor");
    let held = account.acquire().await.unwrap();
    for (options, why) in [
        (["--wait", "3000", "--limit", "60000"], "the auditor"),
        (["--wait", "60000", "--limit", "4000"], "not done within 4s"),
    ] {
        let options = [&["--jobs", "8", "--at-once", "1"], &options[..]].concat();
        let mut worker = work(&store.url(), folder.path(), &options);
        assert!(worker.end().await.success());
        assert_eq!(worker.out(), ["6 of 8 jobs done"], "{}", worker.err());
        for job in [4, 5] {
            let told = worker
                .err()
                .lines()
                .any(|line| line.contains(&format!("job={job}")) && line.contains(why));
            assert!(told, "{}", worker.err());
        }
        assert_eq!(names(&locks).await, ["bank/account-0"]);
        assert_eq!(locks.inspect("bank/account-0").await.unwrap().len(), 1);
    }
    held.release().await.unwrap();
    assert_eq!(balances(folder.path()).iter().sum::<i64>(), 500);
}

async fn leaves_nothing_at_a_signal(store: &str) {
    let (store, folder) = (Store::open(store).await, tempdir().unwrap());
    let locks = connect(&store.url()).await;
    let held = locks.lock("bank/account-0").unwrap().acquire().await.unwrap();
    let options = ["--jobs", "8", "--at-once", "8", "--wait", "600000", "--limit", "600000"];
    let mut worker = work(&store.url(), folder.path(), &options);
    // Two transfers want it. Only one reaches it if the job that publishes the rates comes between
    // them: requests sent together may arrive in any order.
    let waits = async || locks.inspect("bank/account-0").await.unwrap().len() > 1;
    eventually("a transfer waits", waits).await;
    worker.signal("-TERM");
    assert!(worker.end().await.success());
    assert_eq!(worker.out(), ["stopped"]);
    // It prints this after the store's confirmation.
    assert_eq!(names(&locks).await, ["bank/account-0"]);
    assert_eq!(locks.inspect("bank/account-0").await.unwrap().len(), 1);
    assert_eq!(balances(folder.path()).iter().sum::<i64>(), 500);
    held.release().await.unwrap();
}

async fn names(locks: &Locks) -> Vec<String> {
    let names = locks.names("").await.unwrap();
    names.iter().map(ToString::to_string).collect()
}
