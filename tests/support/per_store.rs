//! Macros for tests that are the same for every store.

/// Makes one test of each function on every store that is compiled in, named `store::function`.
macro_rules! on_every_store {
    ($($check:ident),+ $(,)?) => {
        test_on!("sqlite" sqlite $($check)+);
        on_every_server!($($check),+);
        test_on!("postgres" postgres $($check)+);
        test_on!("mysql" mysql $($check)+);
    };
}

/// The same on etcd, Redis and ZooKeeper.
macro_rules! on_every_server {
    ($($check:ident),+ $(,)?) => {
        test_on!("etcd" etcd $($check)+);
        test_on!("redis" redis $($check)+);
        test_on!("zookeeper" zookeeper $($check)+);
    };
}

macro_rules! test_on {
    ($feature:literal $store:ident $($check:ident)+) => {
        #[cfg(feature = $feature)]
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    super::$check($feature).await;
                }
            )+
        }
    };
}
