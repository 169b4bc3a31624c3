//! Counters for tokens that were emptied or set back.

use std::path::Path;

use lock_sql::client::{self, Connection, SqliteConnection};

use crate::{file::locks, support};

async fn run(file: &Path, sql: &'static str) {
    let mut raw = SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();
    client::query(sql).execute(&mut raw).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emptied_counters_let_no_attempt_pass_a_holder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    support::counters::emptied_counters_let_no_attempt_pass_a_holder(
        locks(&file).await,
        async || locks(&file).await,
        async || run(&file, "DELETE FROM distlock_v1_slots").await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_that_were_set_back_let_no_attempt_pass_a_holder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let (first, second) = (locks(&file).await, locks(&file).await);
    let set_back = async || run(&file, "UPDATE distlock_v1_slots SET token = 0").await;
    support::counters::counters_that_were_set_back_let_no_attempt_pass_a_holder(
        first, second, set_back,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_without_a_counter_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let empty = async || run(&file, "DELETE FROM distlock_v1_slots").await;
    support::counters::an_upgrade_without_a_counter_is_refused(locks(&file).await, empty).await;
}
