//! Long texts.

use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support::sizes,
};

on_both!(a_set_of_long_texts_is_taken);

async fn a_set_of_long_texts_is_taken(dialect: Dialect) {
    let server = Database::start(dialect).await;
    sizes::a_set_of_long_texts_is_taken(locks(&server.url()).await).await;
}
