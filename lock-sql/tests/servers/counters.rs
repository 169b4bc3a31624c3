//! Counters for tokens that were emptied.

use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support,
};

on_both!(emptied_counters_let_no_attempt_pass_a_holder);

async fn emptied_counters_let_no_attempt_pass_a_holder(dialect: Dialect) {
    let server = Database::start(dialect).await;
    support::counters::emptied_counters_let_no_attempt_pass_a_holder(
        locks(&server.url()).await,
        async || locks(&server.url()).await,
        async || drop(server.sql("TRUNCATE TABLE distlock_v1_slots").await),
    )
    .await;
}
