//! A held lock survives a burst of acquires.

use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support,
};

on_both!(a_held_lock_outlives_a_burst);

async fn a_held_lock_outlives_a_burst(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    support::burst::a_held_lock_outlives_a_burst(locks(&server.url()).await).await;
    assert_eq!(server.entries().await, 0);
}
