//! Tests that go round the stores.

/// One test of each function on every store that is compiled in.
macro_rules! on_every_store {
    ($($check:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $check() {
                super::$check(&crate::place::Place::new());
            })+
        }
        #[cfg(feature = "etcd")]
        crate::stores::on_server!(etcd, Etcd, $($check),+);
        #[cfg(feature = "redis")]
        crate::stores::on_server!(redis, Redis, $($check),+);
        #[cfg(feature = "zookeeper")]
        crate::stores::on_server!(zookeeper, ZooKeeper, $($check),+);
    };
}
pub(crate) use on_every_store;

/// The same on one private server for each.
#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
macro_rules! on_server {
    ($store:ident, $server:ident, $($check:ident),+) => {
        mod $store {
            $(#[test]
            fn $check() {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                let server = runtime.block_on(lock_lab::$server::builder().in_memory().start());
                let server = server.expect("a server");
                super::$check(&crate::place::Place::on(server.url()));
            })+
        }
    };
}
#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
pub(crate) use on_server;
