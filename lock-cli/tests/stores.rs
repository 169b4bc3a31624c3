//! Tests that run on several stores.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

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
pub fn on(scheme: &str, check: fn(&Place)) {
    if scheme == "zookeeper" {
        return check(&Place::on(zookeeper()));
    }
    let store = open(scheme);
    check(&Place::on(store.url()));
}

/// A folder of a server that all tests share, since it takes seconds to start.
pub fn zookeeper() -> String {
    static SERVER: OnceLock<AnyStore> = OnceLock::new();
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let server = SERVER.get_or_init(|| open("zookeeper"));
    format!("{}?prefix=/folder-{}", server.url(), FOLDERS.fetch_add(1, Relaxed))
}

pub fn open(scheme: &str) -> AnyStore {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(AnyStore::open_in_memory(scheme))
}
