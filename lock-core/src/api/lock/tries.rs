//! The tries of one wait.

use std::{mem, time::Duration};

use crate::{Error, LockName, LossReason, deadline::jitter, driver::trace, keep::backoff::Backoff};

/// The pauses between tries.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// Which errors a wait outlasts, and the pauses after them.
pub(crate) struct Tries {
    through_outages: bool,
    pauses: Backoff,
    /// Whether it was told that others use another number of permits.
    told: bool,
}

impl Tries {
    /// Of a wait that goes on after outages, or not.
    pub(crate) fn new(through_outages: bool) -> Self {
        Self { through_outages, pauses: PAUSES, told: false }
    }

    /// The pause before the next try; `None` if this error ends the wait.
    pub(crate) fn after(&mut self, error: &Error, name: &LockName) -> Option<Duration> {
        if differs(error) {
            if !mem::replace(&mut self.told, true) {
                trace::permits_differ(name, error);
            }
            return Some(jitter(self.pauses.take()));
        }
        (self.through_outages && is_outage(error)).then(|| {
            let pause = jitter(self.pauses.take());
            trace::acquire_failed(name, error, pause);
            pause
        })
    }
}

/// Whether others use another number of permits, as in a rolling deploy: the store has no line of
/// both. Another option stays wrong, however long it waits.
fn differs(error: &Error) -> bool {
    matches!(error, Error::InvalidOption { option, .. } if option == "permits")
}

/// Whether the store was out of reach, or has lost the place without anybody's wish. What is unknown
/// counts as revoked, and so does the end of a session: an operator may have revoked etcd's lease.
fn is_outage(error: &Error) -> bool {
    use LossReason::{Expired, Failover, Restored};
    match error {
        Error::Unavailable { .. } => true,
        Error::PlaceLost { reason, .. } | Error::Lost { reason, .. } => {
            matches!(reason, Expired | Failover | Restored)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_outlasts_no_loss_that_somebody_may_have_wished() {
        use LossReason::{EntryGone, Expired, Failover, Restored, SessionEnded};
        let name = LockName::new("a").unwrap();
        let goes_on = |reason| {
            let lost = Error::Lost { name: name.clone(), reason };
            Tries::new(true).after(&lost, &name).is_some()
        };
        assert!([Expired, Failover, Restored].into_iter().all(goes_on));
        assert!(![EntryGone, SessionEnded].into_iter().any(goes_on));
    }
}
