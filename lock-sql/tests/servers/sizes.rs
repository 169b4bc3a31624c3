//! Texts that are too long.

use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support::sizes,
};

on_both!(texts_have_a_longest_length, a_set_of_long_texts_is_taken);

async fn texts_have_a_longest_length(dialect: Dialect) {
    let server = Database::start(dialect).await;
    sizes::texts_have_a_longest_length(locks(&server.url()).await).await;
}

async fn a_set_of_long_texts_is_taken(dialect: Dialect) {
    let server = Database::start(dialect).await;
    sizes::a_set_of_long_texts_is_taken(locks(&server.url()).await).await;
}
