//! A backup that is restored while clients are connected.

use lock_core::{Error, LossReason};
use lock_sql::Dialect;

use crate::servers::{Database, locks, on_both};

on_both!(a_restore_is_found_by_the_next_renewal_and_needs_a_raise);

const TABLES: [&str; 2] = ["distlock_v1_slots", "distlock_v1_entries"];

/// Runs statements for each table.
async fn for_each_table(server: &Database, statements: impl Fn(&str) -> String) {
    server.sql(&TABLES.map(statements).concat()).await;
}

/// The renewals of both would come in 20 s: only `renew` asks before.
async fn a_restore_is_found_by_the_next_renewal_and_needs_a_raise(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (ours, theirs) = (locks(&server.url()).await, locks(&server.url()).await);
    let hold = async |name: &str| ours.lock(name).unwrap().acquire().await.unwrap();
    let kept = hold("kept").await;
    for_each_table(&server, |it| format!("CREATE TABLE copy_of_{it} AS SELECT * FROM {it};")).await;
    hold("gone").await.release().await.unwrap();
    let gone = hold("gone").await;
    let before = gone.token();

    let restore =
        |it: &str| format!("DELETE FROM {it}; INSERT INTO {it} SELECT * FROM copy_of_{it};");
    for_each_table(&server, restore).await;
    let again = theirs.lock("gone").unwrap().acquire().await.unwrap();
    assert!(again.token() <= before, "the counters came back as they were");
    kept.renew().await.unwrap();
    let told = gone.renew().await.unwrap_err();
    assert!(matches!(told, Error::Lost { reason: LossReason::EntryGone, .. }), "{told:?}");
    again.release().await.unwrap();

    ours.raise_token_floor(before).await.unwrap();
    let again = theirs.lock("gone").unwrap().acquire().await.unwrap();
    assert!(again.token() > before);
    again.release().await.unwrap();
}
