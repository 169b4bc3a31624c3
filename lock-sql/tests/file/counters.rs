//! Counters for tokens that were emptied.

use lock_sql::client::{self, Connection, SqliteConnection};

use crate::{file::locks, support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emptied_counters_let_no_attempt_pass_a_holder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    support::counters::emptied_counters_let_no_attempt_pass_a_holder(
        locks(&file).await,
        async || locks(&file).await,
        async || {
            let url = format!("sqlite:{}", file.display());
            let mut raw = SqliteConnection::connect(&url).await.unwrap();
            client::query("DELETE FROM distlock_v1_slots").execute(&mut raw).await.unwrap();
        },
    )
    .await;
}
