//! Tests that run on several stores.

use lock_lab::AnyStore;

use crate::place::Place;

/// One test of each function on every store that is compiled in.
macro_rules! on_every_store {
    ($($check:ident),+ $(,)?) => {
        crate::stores::on_store!("sqlite", sqlite, $($check),+);
        crate::stores::on_store!("etcd", etcd, $($check),+);
        crate::stores::on_store!("redis", redis, $($check),+);
        crate::stores::on_store!("zookeeper", zookeeper, $($check),+);
    };
}
pub(crate) use on_every_store;

macro_rules! on_store {
    ($feature:literal, $store:ident, $($check:ident),+) => {
        #[cfg(feature = $feature)]
        mod $store {
            $(#[test]
            fn $check() {
                crate::stores::on($feature, super::$check);
            })+
        }
    };
}
pub(crate) use on_store;

/// Runs a test on a store of its own.
pub fn on(store: &str, check: fn(&Place)) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(AnyStore::open_in_memory(store));
    check(&Place::on(store.url()));
}
