//! Counters for tokens that were emptied.

use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support,
};

on_both!(
    emptied_counters_let_no_attempt_pass_a_holder,
    counters_that_were_set_back_let_no_attempt_pass_a_holder,
    an_upgrade_without_a_counter_is_refused,
);

async fn emptied_counters_let_no_attempt_pass_a_holder(dialect: Dialect) {
    let server = Database::start(dialect).await;
    support::counters::emptied_counters_let_no_attempt_pass_a_holder(
        locks(&server.url()).await,
        async || locks(&server.url()).await,
        async || drop(server.sql("TRUNCATE TABLE distlock_v1_slots").await),
    )
    .await;
}

async fn counters_that_were_set_back_let_no_attempt_pass_a_holder(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (first, second) = (locks(&server.url()).await, locks(&server.url()).await);
    let set_back = async || drop(server.sql("UPDATE distlock_v1_slots SET token = 0").await);
    support::counters::counters_that_were_set_back_let_no_attempt_pass_a_holder(
        first, second, set_back,
    )
    .await;
}

async fn an_upgrade_without_a_counter_is_refused(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let empty = async || drop(server.sql("TRUNCATE TABLE distlock_v1_slots").await);
    support::counters::an_upgrade_without_a_counter_is_refused(locks(&server.url()).await, empty)
        .await;
}
