//! The usual way: what people lock with on a store today, as it is installed.
#![allow(dead_code, reason = "each store uses its part")]

#[cfg(feature = "etcd")]
pub(super) mod etcdctl;
#[cfg(feature = "sqlite")]
pub(super) mod flock;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) mod locks;
pub(super) mod mutex;
pub(super) mod python;
