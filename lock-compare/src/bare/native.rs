//! Questions to a store, whose bare client may not be compiled in.

use crate::{Failure, Missing, Store};

/// Which revision of the whole store created each of two keys, put by one transaction or by two.
///
/// # Errors
///
/// If the store does not answer, or its bare client is not compiled in.
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
            Err(not_compiled_in(store))
        }
    }
}

/// What etcd's own services do when one name is asked for twice.
#[derive(Clone, Debug)]
pub(crate) struct Twice {
    /// The keys of both callers, as far as each has one.
    pub(crate) keys: (String, Option<String>),
    /// Whether a third one, with a lease of its own, gets in after the first caller has left.
    pub(crate) third_got_in: bool,
    /// What the leader says, before and after the second call.
    pub(crate) values: (String, String),
}

/// Asks etcd's own services for one name twice: with one lease, or with two. It takes the lock, and
/// leads the election of the same name.
///
/// # Errors
///
/// If etcd does not answer, or its bare client is not compiled in.
pub(crate) async fn same_lease(addr: &str, name: &str, one_lease: bool) -> Result<Twice, Failure> {
    #[cfg(feature = "etcd")]
    {
        super::etcd::same_lease(addr, name, one_lease).await
    }
    #[cfg(not(feature = "etcd"))]
    {
        let _ = (addr, name, one_lease);
        Err(not_compiled_in(Store::Etcd))
    }
}

#[cfg_attr(all(feature = "etcd", feature = "zookeeper"), allow(dead_code))]
fn not_compiled_in(store: Store) -> Failure {
    let remedy = format!("build with the feature {}", store.scheme());
    Missing::new(format!("{store} is not compiled in"), remedy).into()
}
