//! Requests to a store. They return an error if its bare client is not compiled in.

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
        Store::Etcd => super::etcd::create_revisions(addr, keys, together).await,
        #[cfg(feature = "zookeeper")]
        Store::ZooKeeper => super::zookeeper::create_revisions(addr, keys, together).await,
        _ => {
            let _ = (addr, keys, together);
            Err(Missing::client_of(store).into())
        }
    }
}

/// Returns the leader's value after the first and after the second campaign of one name, with one
/// lease or with two, in etcd's own election service.
pub(crate) async fn campaigns(
    addr: &str,
    name: &str,
    one_lease: bool,
) -> Result<[String; 2], Failure> {
    #[cfg(feature = "etcd")]
    {
        super::etcd::campaigns(addr, name, one_lease).await
    }
    #[cfg(not(feature = "etcd"))]
    {
        let _ = (addr, name, one_lease);
        Err(Missing::client_of(Store::Etcd).into())
    }
}
