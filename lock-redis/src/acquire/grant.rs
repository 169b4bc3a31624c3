//! From a grant to its lease.

use std::sync::Arc;

use lock_core::{
    Clock, Instant, Lease, Result,
    keep::{attempt::End, grant::Grants, lease::LeaseState, wait::Waits},
};

use crate::{
    error,
    lease::RedisLease,
    session::{Session, attempt::Attempt},
};

impl Grants for Session {
    fn enter(&self, attempt: &Arc<Attempt>) -> Result<()> {
        let earlier = self.book().attempts.enter(attempt, Clock::Boot.now());
        if earlier.ok_or_else(error::closed)? {
            self.alarm.notify_one();
        }
        Ok(())
    }

    fn forget(&self, attempt: &Attempt) {
        self.book().attempts.forget(attempt);
    }

    fn hold(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
        sent: Instant,
        token: u64,
    ) -> Result<Box<dyn Lease>, End> {
        let state = LeaseState::new(attempt, token, attempt.hold(sent, token)?);
        Ok(Box::new(RedisLease::new(self.clone(), attempt.clone(), state)))
    }

    fn clean_up_all(self: &Arc<Self>, attempts: &[Arc<Attempt>]) {
        attempts.iter().for_each(|attempt| self.clean_up(attempt));
    }
}
