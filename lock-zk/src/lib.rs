//! The ZooKeeper driver of distlock.

mod acquire;
mod config;
mod entry;
mod error;
mod heartbeat;
mod inspect;
mod layout;
mod lease;
mod lock;
mod nodelay;
mod probe;
mod queue;
mod recover;
mod sentinel;
mod session;
mod sessions;

pub use zookeeper_client as client;

pub use crate::{
    config::{Access, ZkConfig},
    layout::Layout,
    lease::ZkLease,
    lock::ZkLock,
};
