//! Waits in vain.

use std::time::Duration;

use lock_lab::Proxy;
use lock_sql::Dialect;

use crate::{
    servers::{Database, eventually, locks, on_both},
    support,
};

on_both!(waits_in_vain_end_together);

async fn waits_in_vain_end_together(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.delay(Duration::from_millis(1));
    support::vain::waits_in_vain_end_together(locks(&server.url_via(&proxy)).await).await;
    eventually("nothing is left", async || server.entries().await == 0).await;
}
