//! The stores through their bare clients, for requests that are not about keys.

#[cfg(feature = "etcd")]
mod etcd;
mod native;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "zookeeper")]
mod zookeeper;

pub(crate) use self::native::{campaigns, create_revisions};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::sql::{Dialect, Sql, SqlArg};
#[cfg(feature = "zookeeper")]
pub(crate) use self::zookeeper::Ephemeral;
