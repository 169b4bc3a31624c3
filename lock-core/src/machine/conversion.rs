//! How a grant is held: as what, and by how many guards together.

use std::sync::Mutex;

use crate::{Kind, Lease, Result, keep::poison::lock};

/// What the guards of one grant share.
pub(crate) struct HeldAs {
    state: Mutex<State>,
    /// One conversion or publication at a time, also when its caller has left.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

struct State {
    /// What the holder may rely on. While a conversion is under way, or nobody knows how it ended, that
    /// is the shared lock.
    kind: Kind,
    guards: u32,
    /// What a conversion was to lead to whose answer is not known.
    doubt: Option<Kind>,
}

/// What becomes of another guard.
pub(crate) enum Entering {
    Counted,
    /// The last one has released.
    Over,
    /// The grant is shared, and the new guard wants it alone.
    Shared,
}

/// Whether a conversion may begin.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Beginning {
    Go,
    Done,
    /// A semaphore's permits.
    Permits,
    /// Others hold the grant, too.
    Others,
}

impl HeldAs {
    pub(crate) fn new(kind: Kind) -> Self {
        let state = State { kind, guards: 1, doubt: None };
        Self { state: Mutex::new(state), turn: tokio::sync::Mutex::default() }
    }

    pub(crate) fn kind(&self) -> Kind {
        lock(&self.state).kind
    }

    /// Counts one more guard that wants it as `kind`.
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

    /// One guard less; whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        let mut state = lock(&self.state);
        state.guards = state.guards.saturating_sub(1);
        state.guards == 0
    }

    /// No guard any more, if there was one only; whether that was so.
    pub(crate) fn leave_alone(&self) -> bool {
        let mut state = lock(&self.state);
        let alone = state.guards == 1;
        if alone {
            state.guards = 0;
        }
        alone
    }

    /// Begins to turn it into another kind. From now on nobody may rely on having it alone.
    pub(crate) fn begin(&self, to: Kind) -> Beginning {
        let mut state = lock(&self.state);
        match state.kind {
            Kind::Permit { .. } => Beginning::Permits,
            now if now == to => Beginning::Done,
            _ if state.guards > 1 => Beginning::Others,
            _ => {
                (state.kind, state.doubt) = (Kind::Shared, Some(to));
                Beginning::Go
            }
        }
    }

    /// Asks the store to turn it into this kind; whether it did.
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

    /// Finds out how an earlier conversion ended whose answer is not known: by asking again.
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
    fn nobody_relies_on_the_exclusive_lock_while_it_is_converted() {
        let held_as = HeldAs::new(Kind::Exclusive);
        assert_eq!(held_as.begin(Kind::Exclusive), Beginning::Done);
        assert_eq!(held_as.begin(Kind::Shared), Beginning::Go);
        assert_eq!(held_as.kind(), Kind::Shared);
        assert!(matches!(held_as.enter(Kind::Exclusive), Entering::Shared));
        assert!(matches!(held_as.enter(Kind::Shared), Entering::Counted));
        assert_eq!(held_as.begin(Kind::Exclusive), Beginning::Others);
    }
}
