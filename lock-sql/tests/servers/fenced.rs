//! A write in the same database that only the newest holder may do.

use lock_core::FencingToken;
use lock_sql::Dialect;

use crate::servers::{Database, locks, on_both};

on_both!(a_late_write_is_refused);

/// The crate's documentation has this recipe.
async fn write(server: &Database, stock: u32, token: FencingToken) -> bool {
    let write = format!(
        "UPDATE orders SET stock = {stock}, fence = {token} WHERE id = 42 AND fence <= {token};"
    );
    server.sql(&write).await;
    let written = format!("SELECT count(*) FROM orders WHERE stock = {stock}");
    server.sql(&written).await.trim() == "1"
}

async fn a_late_write_is_refused(dialect: Dialect) {
    let server = Database::start(dialect).await;
    server.sql("CREATE TABLE orders (id int PRIMARY KEY, stock int, fence bigint)").await;
    server.sql("INSERT INTO orders VALUES (42, 100, 0)").await;
    let locks = locks(&server.url()).await;
    let lock = locks.lock("orders/42").unwrap();
    let late = lock.acquire().await.unwrap();
    let token = late.token();
    assert!(write(&server, 99, token).await);
    assert!(write(&server, 98, token).await, "the holder may write again");
    late.release().await.unwrap();
    let guard = lock.acquire().await.unwrap();
    assert!(write(&server, 97, guard.token()).await);
    assert!(!write(&server, 1, token).await, "somebody without the lock has written");
    guard.release().await.unwrap();
}
