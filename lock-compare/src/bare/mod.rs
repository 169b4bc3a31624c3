//! What only the bare clients of a store can ask it.

#[cfg(feature = "etcd")]
mod etcd;
mod native;
#[cfg(feature = "zookeeper")]
mod zookeeper;

pub(crate) use self::native::{campaigns, create_revisions};
#[cfg(feature = "zookeeper")]
pub(crate) use self::zookeeper::Ephemeral;
