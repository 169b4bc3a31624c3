//! The usual way: what people lock with on a store today, as it is installed.

#[cfg(feature = "etcd")]
mod etcdctl;
#[cfg(feature = "sqlite")]
mod flock;
mod mutex;
mod python;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;

use super::way::{Open, Way};
use crate::{Failure, Role};

/// Returns the usual way of a store, if there is one.
pub(super) fn of(store: &str) -> Result<Vec<Way>, Failure> {
    let (name, each, open): (_, _, Open) = match store {
        "memory" => ("tokio::sync::Mutex", None, mutex::open),
        #[cfg(feature = "sqlite")]
        "sqlite" => ("flock(2) on a file beside it", None, flock::open),
        #[cfg(feature = "etcd")]
        "etcd" => {
            lock_lab::etcdctl()?;
            ("etcdctl lock, a process each time", Some("a process"), etcdctl::open)
        }
        "redis" => {
            python::find(python::REDIS)?;
            ("redis-py Lock, by a pipe", Some("a process"), python::redis)
        }
        "zookeeper" => {
            python::find(python::KAZOO)?;
            ("kazoo Lock, by a pipe", Some("a process"), python::kazoo)
        }
        #[cfg(feature = "mysql")]
        "mysql" => ("GET_LOCK", Some("a connection"), sql::open),
        #[cfg(feature = "postgres")]
        "postgres" => ("pg_advisory_lock", Some("a connection"), sql::open),
        _ => return Ok(Vec::new()),
    };
    Ok(vec![Way { name, role: Role::Usual, each, open }])
}
