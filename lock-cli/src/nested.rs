//! Locks that this program already holds for the command in which it runs.
//!
//! `distlock run n -- distlock run n -- true` would wait for itself: the outer one holds the lock
//! until its command has ended. So each `run` and `elect` lists its lock in a variable for its
//! command, beside those of the processes above it.

use std::env;

use distlock::{Kind, LockKind};
use rustix::process::{Pid, getpid};
use serde::{Deserialize, Serialize};

use crate::{
    choice::Choice,
    exit::{Code, Failure},
    opt::Terms,
    supervise::is_ancestor,
    variables::HELD,
};

/// A lock, and the process that holds it.
#[derive(Deserialize, Serialize)]
struct Outer {
    process: i32,
    store: String,
    name: String,
    kind: LockKind,
    /// Of how many permits it holds one.
    permits: Option<u32>,
}

impl Outer {
    /// Whether a request for the lock would wait until this one is released. Readers are let in
    /// beside each other, and so are holders of permits, of the same number and more than one.
    fn excludes(&self, store: &str, name: &str, kind: LockKind, permits: Option<u32>) -> bool {
        let beside = match kind {
            LockKind::Shared => true,
            LockKind::Permits => self.permits == permits && permits != Some(1),
            _ => false,
        };
        self.store == store && self.name == name && (self.kind != kind || !beside)
    }

    /// Whether the process waits for this one. The variable may have come another way, as by `at`.
    fn is_above(&self) -> bool {
        Pid::from_raw(self.process.max(0)).is_some_and(is_ancestor)
    }
}

/// The locks of the variable, which has them as JSON. Another program's text has none.
fn outer() -> Vec<Outer> {
    let text = env::var(HELD).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Refuses to wait for a lock that a process above this one holds until this one has ended.
pub(crate) fn refuse_own(
    store: &Choice,
    name: &str,
    kind: LockKind,
    permits: Option<u32>,
    terms: &Terms,
) -> Result<(), Failure> {
    let store = store.public();
    let excludes = |outer: &Outer| outer.excludes(&store, name, kind, permits) && outer.is_above();
    let Some(outer) = outer().into_iter().find(|outer| !terms.no_wait && excludes(outer)) else {
        return Ok(());
    };
    let why = format!(
        "lock {name} is held by process {}, the distlock in whose command this one runs: it would \
         wait for itself; --no-wait tells that it is busy",
        outer.process
    );
    Err(Failure::new(Code::Usage, why))
}

/// The variable's text for the command of this process, which holds this lock, too.
pub(crate) fn with(store: &Choice, name: &str, kind: Kind) -> String {
    let (process, name) = (getpid().as_raw_pid(), name.to_owned());
    let permits = match kind {
        Kind::Permit { limit, .. } => Some(limit),
        _ => None,
    };
    let mut held = outer();
    held.push(Outer { process, store: store.public(), name, kind: kind.into(), permits });
    serde_json::to_string(&held).unwrap_or_default()
}
