//! The state of a lease: the token, the number of published values, and the validity.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    Error, FencingToken, Instant, LockName, LossReason, Result, Validity, keep::attempt::Progress,
    validity::safe_until,
};

/// The state of a lease.
#[derive(Debug)]
pub struct LeaseState {
    name: LockName,
    ttl: Duration,
    token: AtomicU64,
    version: AtomicU64,
    validity: Validity,
}

impl LeaseState {
    /// The state of a lease of a granted attempt. No value is published yet.
    pub fn new<A, W, H>(of: &Progress<A, W, H>, token: u64, validity: Validity) -> Self {
        let (token, version) = (token.into(), 0.into());
        Self { name: of.name.clone(), ttl: of.ttl, token, version, validity }
    }

    /// The grant's fencing token.
    pub fn token(&self) -> FencingToken {
        FencingToken::new(self.token.load(Ordering::Acquire))
    }

    /// Notes the token of an upgrade.
    pub fn upgraded(&self, token: u64) {
        self.token.store(token, Ordering::Release);
    }

    /// The version of the next value: 1, 2 and so on. A reply may be lost, and the caller may not
    /// wait for it. By their versions, the newer value stays in any order of arrival, and
    /// each is kept once.
    pub fn next_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// See [`Validity`].
    pub fn validity(&self) -> &Validity {
        &self.validity
    }

    /// Notes a renewal: when the request was sent that found the entry, or `None` if the store does
    /// not have it any more.
    pub fn renewed(&self, sent: Option<Instant>) -> Result<()> {
        let sent = sent.ok_or_else(|| self.gone())?;
        self.validity.extend(safe_until(sent, self.ttl));
        Ok(())
    }

    /// The store does not have the entry any more: the lock is lost, with this error.
    pub fn gone(&self) -> Error {
        self.validity.lose(LossReason::EntryGone);
        Error::Lost { name: self.name.clone(), reason: LossReason::EntryGone }
    }

    /// The time until which a release at `now` is tried again. By then the entry has expired, even
    /// if a renewal is still on its way.
    pub fn expired_by(&self, now: Instant) -> Instant {
        self.validity.until().max(now) + self.ttl
    }
}

impl<A, W, H> Progress<A, W, H> {
    /// The error of a request that needs the grant, which is lost for this reason.
    pub fn lost(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{Clock, Request};

    #[test]
    fn a_renewal_that_finds_no_entry_loses_the_lock() {
        let (ttl, now) = (Duration::from_secs(9), Clock::Boot.now());
        let request = Request::new(LockName::new("orders").unwrap(), ttl);
        let attempt = Progress::<()>::new(Uuid::new_v4(), &request, ttl / 3, ());
        let state = LeaseState::new(&attempt, 3, attempt.hold(now, ()).unwrap());
        state.upgraded(4);
        assert_eq!((state.token(), state.next_version()), (FencingToken::new(4), 1));
        state.renewed(Some(now + ttl)).unwrap();
        assert_eq!(state.validity().until(), safe_until(now + ttl, ttl));
        assert_eq!(state.expired_by(now), safe_until(now + ttl, ttl) + ttl);
        let lost = state.renewed(None).unwrap_err();
        assert!(matches!(lost, Error::Lost { reason: LossReason::EntryGone, .. }), "{lost:?}");
        assert_eq!(state.validity().loss(), Some(LossReason::EntryGone));
    }
}
