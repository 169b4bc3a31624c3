//! A lock acquired by an owner, which may hold it already.

use std::sync::Arc;

use crate::{
    Held, Instant, Lock, LockGuard, Owner, Result,
    api::owner::Seat,
    machine::{conversion::Entering, ended_waits::Found},
};

impl Lock {
    /// Waits for the lock for its owner.
    pub(crate) async fn acquire_as(mut self, owner: Owner) -> Result<LockGuard> {
        let seat = owner.seat(&self.client, &self.request.name);
        let clock = self.client.home.clock;
        let started = clock.now();
        let until = self.wait.map_or(Instant::NEVER, |limit| started + limit);
        if let Some(guard) = self.again(&seat).await? {
            return Ok(guard);
        }
        let _turn = tokio::select! {
            biased;
            turn = seat.turn.lock() => turn,
            () = clock.sleep_until(until) => {
                return Err(self.in_vain(clock.now().since(started), Found::default()));
            }
        };
        // Another task of the owner may have got it.
        if let Some(guard) = self.again(&seat).await? {
            return Ok(guard);
        }
        if until != Instant::NEVER {
            self.wait = Some(until.since(clock.now()));
        }
        let guard = self.wait_alone().await?;
        *seat.held() = Arc::downgrade(&guard.held().0);
        Ok(guard)
    }

    /// Takes the lock if it is free or held by its owner.
    pub(crate) async fn try_acquire_as(self, owner: Owner) -> Result<Option<LockGuard>> {
        let seat = owner.seat(&self.client, &self.request.name);
        if let Some(guard) = self.again(&seat).await? {
            return Ok(Some(guard));
        }
        // Another task of the owner waits for it already, ahead of this one.
        let Ok(_turn) = seat.turn.try_lock() else { return Ok(None) };
        if let Some(guard) = self.again(&seat).await? {
            return Ok(Some(guard));
        }
        let guard = self.try_alone().await?;
        if let Some(guard) = &guard {
            *seat.held() = Arc::downgrade(&guard.held().0);
        }
        Ok(guard)
    }

    /// The owner's present hold, counted once more. A leader that campaigns again publishes its new
    /// value.
    async fn again(&self, seat: &Seat) -> Result<Option<LockGuard>> {
        let held = seat.held().upgrade();
        let Some(hold) = held.filter(|hold| hold.check().is_ok()) else { return Ok(None) };
        // Before it counts for the grant: if the last guard leaves in between, a drain must not
        // find that no guard is left.
        let stay = hold.client.drain.enter_again();
        match hold.held_as.enter(self.request.kind) {
            Entering::Counted => {
                let guard = LockGuard::counted(Held(hold), stay);
                if let Some(value) = self.request.value.clone() {
                    guard.publish(value).await?;
                }
                Ok(Some(guard))
            }
            Entering::Over => Ok(None),
            Entering::Shared => Err(self.client.unsupported(format!(
                "wait for {} until its own shared holder releases it; use try_upgrade",
                hold.name
            ))),
        }
    }
}
