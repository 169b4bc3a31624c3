//! Tests that are the same for every store.

/// One test of each function on every store that is compiled in, named `store::function`.
macro_rules! on_every_store {
    ($($check:ident),+ $(,)?) => {
        on_every_store!(@store "etcd" etcd $($check)+);
        on_every_store!(@store "redis" redis $($check)+);
        on_every_store!(@store "zookeeper" zookeeper $($check)+);
    };
    (@store $feature:literal $store:ident $($check:ident)+) => {
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
