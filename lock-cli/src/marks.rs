//! The marks of work that is done, for people and programs.

use distlock::{Error, LockName, Locks, Mark, Result};
use serde::Serialize;

use crate::{exit::say, print};

/// A mark as data for programs.
#[derive(Serialize)]
pub(crate) struct Done {
    host: String,
    token: u64,
    /// RFC 3339.
    done_at: String,
    /// When the period ends.
    ends_at: String,
}

impl From<&Mark> for Done {
    fn from(mark: &Mark) -> Self {
        Self {
            host: mark.host.clone(),
            token: mark.token.value(),
            done_at: print::time(mark.done_at),
            ends_at: print::time(mark.ends_at),
        }
    }
}

/// What a run says that does nothing.
pub(crate) fn done(mark: &Mark) -> String {
    format!("done on {} at {}", mark.host, print::time(mark.done_at))
}

/// The same with the end of the period.
pub(crate) fn done_until(mark: &Mark) -> String {
    format!("{}, and counts until {}", done(mark), print::time(mark.ends_at))
}

/// The mark of a name; none if the store keeps no marks.
pub(crate) async fn of(locks: &Locks, name: &str) -> Result<Option<Mark>> {
    if locks.guarantees().marks.is_none() {
        return Ok(None);
    }
    told(locks.mark(name).await)
}

/// The marks of the names that start with `prefix`; none if the store keeps no marks.
pub(crate) async fn below(locks: &Locks, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
    if locks.guarantees().marks.is_none() {
        return Ok(Vec::new());
    }
    told(locks.marks(prefix).await)
}

/// A login that may look at queues need not be allowed to look at marks: ZooKeeper tells their time
/// by a write.
fn told<T: Default>(marks: Result<T>) -> Result<T> {
    match marks {
        Err(error @ Error::Denied { .. }) => {
            say(format_args!("whether work is done is not shown: {error}"));
            Ok(T::default())
        }
        marks => marks,
    }
}
