//! Waits in vain.

use std::time::Duration;

use lock_lab::Proxy;
use lock_sql::Dialect;

use crate::{Database, eventually, locks, on_both, support};

on_both!(a_wait_in_vain_ends_as_one);

async fn a_wait_in_vain_ends_as_one(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.delay(Duration::from_millis(1));
    support::vain::a_wait_in_vain_ends_as_one(locks(&server.url_via(&proxy)).await).await;
    eventually("nothing is left", async || server.entries().await == 0).await;
}
