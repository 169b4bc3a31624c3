//! Floors: the bare client, which sends the least that takes and frees a name, and the bare client
//! which touches the same keys as distlock's driver. They promise nothing and do not wait, so each
//! worker has a name of its own. Memory has no floor: its usual way is the least already.
#![allow(dead_code, reason = "each store uses its part")]

#[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
pub(super) mod database;
#[cfg(feature = "etcd")]
mod etcd;
mod own;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use super::way::{Open, Way};
use crate::Role;

/// Returns the floors of a store.
pub(super) fn of(store: &str) -> Vec<Way> {
    match store {
        #[cfg(feature = "etcd")]
        "etcd" => both(etcd::open, ["txn + delete", "txns that touch distlock's keys"]),
        #[cfg(feature = "redis")]
        "redis" => both(
            redis::open,
            ["SET NX PX + compare-and-delete", "scripts that touch distlock's keys"],
        ),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => {
            both(zookeeper::open, ["create + list, delete", "create with a note + list, delete"])
        }
        #[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
        "sqlite" | "mysql" | "postgres" => {
            both(sql::open, ["insert, delete", "count + bury + insert + list, delete"])
        }
        _ => Vec::new(),
    }
}

fn both(open: Open, [least, keys]: [&'static str; 2]) -> Vec<Way> {
    let way = |(name, role)| Way { name, role, each: None, open };
    [(least, Role::FloorLeast), (keys, Role::FloorKeys)].map(way).into()
}
