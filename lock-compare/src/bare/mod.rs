//! The stores through their bare clients, for requests that are not about keys.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "zookeeper")]
mod zookeeper;

#[cfg(feature = "etcd")]
pub(crate) use self::etcd::campaigns;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::sql::{Dialect, Sql, SqlArg};
#[cfg(feature = "zookeeper")]
pub(crate) use self::zookeeper::Ephemeral;
use crate::{Failure, Missing, Store};

/// Returns the store-wide revision that created each of two keys, put by one transaction or by two.
pub(crate) async fn create_revisions(
    store: Store,
    addr: &str,
    keys: [&str; 2],
    together: bool,
) -> Result<[i64; 2], Failure> {
    match store {
        #[cfg(feature = "etcd")]
        Store::Etcd => etcd::create_revisions(addr, keys, together).await,
        #[cfg(feature = "zookeeper")]
        Store::ZooKeeper => zookeeper::create_revisions(addr, keys, together).await,
        _ => {
            let _ = (addr, keys, together);
            Err(Missing::client_of(store).into())
        }
    }
}
