//! The kind of a grant, and the number of guards that hold it together.

use std::sync::Mutex;

use crate::{Kind, Lease, Result, keep::poison::lock};

/// The state that the guards of one grant share.
pub(crate) struct HeldAs {
    state: Mutex<State>,
    /// One conversion or publication at a time, also if its caller has left.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

struct State {
    /// The kind that the holder may rely on. While a conversion is under way, or its result is
    /// unknown, that is the shared lock.
    kind: Kind,
    guards: u32,
    /// Target of a conversion that is under way, or whose reply was lost.
    doubt: Option<Kind>,
}

/// The result for another guard.
pub(crate) enum Entering {
    Counted,
    /// The last guard has released.
    Over,
    /// The grant is shared, and the new guard wants the exclusive lock.
    Shared,
}

impl HeldAs {
    pub(crate) fn new(kind: Kind) -> Self {
        let state = State { kind, guards: 1, doubt: None };
        Self { state: Mutex::new(state), turn: tokio::sync::Mutex::default() }
    }

    pub(crate) fn kind(&self) -> Kind {
        lock(&self.state).kind
    }

    /// Counts one more guard that wants the grant as `kind`.
    pub(crate) fn enter(&self, kind: Kind) -> Entering {
        let mut state = lock(&self.state);
        match (state.guards, state.kind, kind) {
            (0, ..) => Entering::Over,
            (_, Kind::Shared, Kind::Exclusive) => Entering::Shared,
            _ => {
                state.guards += 1;
                Entering::Counted
            }
        }
    }

    /// Counts one guard less; returns whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        let mut state = lock(&self.state);
        state.guards = state.guards.saturating_sub(1);
        state.guards == 0
    }

    pub(crate) fn has_guards(&self) -> bool {
        lock(&self.state).guards > 0
    }

    /// Removes the guard if it is the only one; returns whether it was.
    pub(crate) fn leave_alone(&self) -> bool {
        let mut state = lock(&self.state);
        let alone = state.guards == 1;
        if alone {
            state.guards = 0;
        }
        alone
    }

    /// Begins to convert the grant. From now on no guard may rely on the exclusive lock. Returns
    /// whether there is something to do, or what cannot be done.
    pub(crate) fn begin(&self, to: Kind) -> Result<bool, &'static str> {
        let mut state = lock(&self.state);
        match state.kind {
            Kind::Permit { .. } => Err("turn a semaphore's permits into a lock"),
            now if now == to => Ok(false),
            _ if state.guards > 1 => Err("convert a lock that its owner holds more than once"),
            _ => {
                (state.kind, state.doubt) = (Kind::Shared, Some(to));
                Ok(true)
            }
        }
    }

    /// Asks the store to convert the grant; returns whether it did.
    pub(crate) async fn ask(&self, lease: &dyn Lease, to: Kind) -> Result<bool> {
        let done = match to {
            Kind::Exclusive => lease.try_upgrade().await?,
            _ => lease.downgrade().await.map(|()| true)?,
        };
        let mut state = lock(&self.state);
        state.doubt = None;
        if done {
            state.kind = to;
        }
        Ok(done)
    }

    /// Asks again for a conversion whose reply was lost, to learn its result.
    pub(crate) async fn settle(&self, lease: &dyn Lease) -> Result<()> {
        let doubt = lock(&self.state).doubt;
        match doubt {
            Some(to) => self.ask(lease, to).await.map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_guard_counts() {
        let held_as = HeldAs::new(Kind::Exclusive);
        assert!(matches!(held_as.enter(Kind::Exclusive), Entering::Counted));
        assert!(!held_as.leave());
        assert!(held_as.leave());
        assert!(matches!(held_as.enter(Kind::Exclusive), Entering::Over));
    }

    #[test]
    fn a_lock_counts_as_shared_while_it_is_converted() {
        let held_as = HeldAs::new(Kind::Exclusive);
        assert_eq!(held_as.begin(Kind::Exclusive), Ok(false));
        assert_eq!(held_as.begin(Kind::Shared), Ok(true));
        assert_eq!(held_as.kind(), Kind::Shared);
        assert!(matches!(held_as.enter(Kind::Exclusive), Entering::Shared));
        assert!(matches!(held_as.enter(Kind::Shared), Entering::Counted));
        assert!(held_as.begin(Kind::Exclusive).unwrap_err().contains("more than once"));
    }
}
