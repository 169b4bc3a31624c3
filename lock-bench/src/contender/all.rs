//! All contenders of a store: distlock, two floors, and the usual way.
#![allow(dead_code, reason = "each store uses its part")]

use super::{
    Contender, Open, Role, distlock, simple,
    usual::{mutex, python},
};
use crate::Failure;

/// As its users connect it.
pub(crate) const DISTLOCK: Contender =
    Contender { name: "distlock", role: Role::Distlock, each: None, open: distlock::open };
/// On Redis: without the queue, waiters poll.
const SIMPLE: Contender =
    Contender { name: "distlock, mode=simple", role: Role::Unordered, ..DISTLOCK };

/// distlock first (on Redis also its mode without an order), then what runs beside it. With a
/// sentence for each that is left out: what is missing, and the remedy.
pub(crate) fn of(scheme: &str, url: &str) -> (Vec<Contender>, Vec<String>) {
    let (mut all, mut missing) = (vec![DISTLOCK], Vec::new());
    match simple(url) {
        Ok(url) => {
            let is_ordered = url.options().text("mode").is_none();
            all.extend(Some(SIMPLE).filter(|_| scheme == "redis" && is_ordered));
            for contender in beside(scheme) {
                match installed(scheme, contender.role) {
                    Ok(()) => all.push(contender),
                    Err(why) => missing.push(format!("{scheme}: {why}")),
                }
            }
        }
        Err(why) => missing.push(format!("{scheme}: {why}")),
    }
    (all, missing)
}

/// The one that a process of a fleet was told to be.
pub(crate) fn named(scheme: &str, name: &str) -> Result<Contender, Failure> {
    let mut all = [DISTLOCK, SIMPLE].into_iter().chain(beside(scheme));
    let found = all.find(|contender| contender.name == name);
    found.ok_or_else(|| format!("{scheme} has no contender {name:?}").into())
}

/// The usual ways are what is installed.
fn installed(scheme: &str, role: Role) -> Result<(), Failure> {
    match (scheme, role) {
        ("etcd", Role::Usual) => Ok(lock_lab::etcdctl().map(drop)?),
        ("redis", Role::Usual) => python::find(python::REDIS).map(drop),
        ("zookeeper", Role::Usual) => python::find(python::KAZOO).map(drop),
        _ => Ok(()),
    }
}

fn least(name: &'static str, open: Open) -> Contender {
    Contender { name, role: Role::FloorLeast, each: None, open }
}

fn keys(name: &'static str, open: Open) -> Contender {
    Contender { role: Role::FloorKeys, ..least(name, open) }
}

fn usual(each: Option<&'static str>, name: &'static str, open: Open) -> Contender {
    Contender { name, role: Role::Usual, each, open }
}

/// Memory has no floor: its usual way is the least already.
fn beside(scheme: &str) -> Vec<Contender> {
    match scheme {
        "memory" => vec![usual(None, "tokio::sync::Mutex", mutex::open)],
        #[cfg(feature = "etcd")]
        "etcd" => vec![
            least("txn + delete", super::floor::etcd::open),
            keys("txns that touch distlock's keys", super::floor::etcd::open),
            usual(
                Some("a process"),
                "etcdctl lock, a process each time",
                super::usual::etcdctl::open,
            ),
        ],
        #[cfg(feature = "redis")]
        "redis" => vec![
            least("SET NX PX + compare-and-delete", super::floor::redis::open),
            keys("scripts that touch distlock's keys", super::floor::redis::open),
            usual(Some("a process"), "redis-py Lock, by a pipe", python::open),
        ],
        #[cfg(feature = "zookeeper")]
        "zookeeper" => vec![
            least("create + list, delete", super::floor::zookeeper::open),
            keys("create with a note + list, delete", super::floor::zookeeper::open),
            usual(Some("a process"), "kazoo Lock, by a pipe", python::open),
        ],
        #[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
        "sqlite" | "mysql" | "postgres" => {
            let usual = match scheme {
                #[cfg(feature = "sqlite")]
                "sqlite" => usual(None, "flock(2) on a file beside it", super::usual::flock::open),
                #[cfg(feature = "mysql")]
                "mysql" => usual(Some("a connection"), "GET_LOCK", super::usual::locks::open),
                #[cfg(feature = "postgres")]
                "postgres" => {
                    usual(Some("a connection"), "pg_advisory_lock", super::usual::locks::open)
                }
                _ => return Vec::new(),
            };
            let least = least("insert, delete", super::floor::sql::open);
            let keys = keys("count + bury + insert + list, delete", super::floor::sql::open);
            vec![least, keys, usual]
        }
        _ => Vec::new(),
    }
}
