//! Which driver opens which URL.

use std::{sync::Arc, time::Duration};

use lock_core::{Connect, DistributedLock, Effect, Error, Opening, Result, StoreUrl};

use crate::{STORES, Store};

/// How long connecting may take: a store that is not there must be an error soon, not a hang.
const CONNECT_LIMIT: Duration = Duration::from_millis(4500);

/// Connects to the store of a URL. Await the result, or add requirements first.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> distlock::Result<()> {
/// use distlock::Requirement;
///
/// let locks = distlock::connect("memory:").require(Requirement::StrictFencing).await?;
/// println!("{:?}", locks.guarantees());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// When awaited: [`Error::InvalidUrl`] for an unknown scheme (it names the known ones) or a missing
/// feature, [`Error::InvalidOption`], [`Error::Unavailable`] within 5 s, [`Error::Denied`] for a
/// wrong password, [`Error::Unmet`].
#[track_caller]
pub fn connect(url: impl AsRef<str>) -> Connect {
    Connect::new(url.as_ref(), open)
}

fn open(url: StoreUrl) -> Opening {
    Box::pin(async move {
        let store = known(&url)?;
        match tokio::time::timeout(CONNECT_LIMIT, driver(store, &url)).await {
            Ok(driver) => driver,
            Err(_) => Err(Error::Unavailable {
                store,
                op: "connect",
                effect: Effect::None,
                source: format!("no answer from {url} within {CONNECT_LIMIT:?}").into(),
            }),
        }
    })
}

/// The scheme of a URL whose driver is compiled in.
fn known(url: &StoreUrl) -> Result<&'static str> {
    let Some(store) = Store::of_scheme(url.scheme()) else {
        let schemes: Vec<_> = STORES.iter().flat_map(Store::schemes).collect();
        let (scheme, schemes) = (url.scheme(), schemes.join(", "));
        return Err(url.error(format!("unknown scheme {scheme:?}; known are {schemes}")));
    };
    let (scheme, feature) = (store.scheme, store.feature);
    match store.compiled_in {
        true => Ok(scheme),
        false => Err(url.error(format!(
            "{scheme} is not compiled in; build with feature {feature:?} (cargo .. --features {feature})"
        ))),
    }
}

async fn driver(store: &str, url: &StoreUrl) -> Result<Arc<dyn DistributedLock>> {
    match store {
        #[cfg(feature = "memory")]
        "memory" => Ok(Arc::new(lock_memory::MemoryConfig::from_url(url)?.connect()?)),
        #[cfg(feature = "etcd")]
        "etcd" => {
            Ok(Arc::new(lock_etcd::EtcdLock::connect(lock_etcd::EtcdConfig::from_url(url)?).await?))
        }
        #[cfg(feature = "redis")]
        "redis" => Ok(Arc::new(
            lock_redis::RedisLock::connect(lock_redis::RedisConfig::from_url(url)?).await?,
        )),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => {
            Ok(Arc::new(lock_zk::ZkLock::connect(lock_zk::ZkConfig::from_url(url)?).await?))
        }
        #[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
        "sqlite" | "mysql" | "postgres" => {
            Ok(Arc::new(lock_sql::SqlLock::connect(lock_sql::SqlConfig::from_url(url)?).await?))
        }
        store => Err(url.error(format!("no driver for {store}"))),
    }
}
