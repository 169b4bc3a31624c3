//! Switching to the next member when one fails, and a new login when one has expired.

use std::sync::{Arc, atomic::Ordering};

use lock_core::{Clock, trace};

use crate::{
    error::{Failure, FailureKind, STORE},
    wire::{
        connection::{Connection, WATCH_LOGINS},
        login::Login,
        member::Member,
    },
};

impl Connection {
    /// Handles a failure through the member of `generation`: switches to the next member, or logs
    /// in again, unless that has been done since.
    /// Returns why a new login was needed and refused.
    pub(crate) async fn failed(&self, generation: u64, failure: &Failure) -> Result<(), Failure> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Ok(()),
            mended = self.mend(generation, failure) => mended,
        }
    }

    /// Returns the failure of a request through the member of `generation`. A login that etcd
    /// refused is [`LoggedOut`](FailureKind::LoggedOut) if there is another one to try.
    pub(super) fn judge(&self, generation: u64, failure: Failure) -> Failure {
        let again = failure.is_login_refused()
            && (self.member().generation != generation
                || self.source.login().is_some_and(Login::has_other));
        match again {
            true => failure.logged_out(),
            false => failure,
        }
    }

    async fn mend(&self, generation: u64, failure: &Failure) -> Result<(), Failure> {
        let failure = &self.judge(generation, failure.clone());
        if failure.kind == FailureKind::LoggedOut {
            return self.replace(generation, true).await;
        }
        if !failure.kind.is_passing() || failure.kind == FailureKind::Busy {
            return Ok(());
        }
        if !self.down.swap(true, Ordering::Relaxed) {
            trace::disconnected(STORE, failure);
            self.reach.broke(failure);
        }
        // The client repairs a connection that broke, with the certificates that it knows, but not
        // one that is silent.
        let is_repaired = failure.kind != FailureKind::Silent && !self.source.is_encrypted();
        if !self.endpoints.is_one() || !is_repaired {
            return self.replace(generation, false).await;
        }
        Ok(())
    }

    /// Logs in again after a watch was refused through the member of `generation` although its
    /// queue may be read. Does nothing if that was done since, or a moment ago for another watch.
    pub(crate) async fn log_in_to_watch(&self, generation: u64) -> Result<(), Failure> {
        let mut last = self.watch_login.lock().await;
        let now = Clock::Boot.now();
        if self.member().generation != generation
            || last.is_some_and(|last| now < last + WATCH_LOGINS)
        {
            return Ok(());
        }
        *last = Some(now);
        self.failed(generation, &Failure::new(FailureKind::LoggedOut, "a watch was refused")).await
    }

    /// Puts a new connection into use: to the `same` member, or to another if there is one. Calls
    /// that wait for a round of dialing share its result.
    /// Returns why no member was reached or accepted the login.
    async fn replace(&self, generation: u64, same: bool) -> Result<(), Failure> {
        let asked = Clock::Boot.now();
        let mut last = self.dialing.lock().await;
        let old = self.member();
        if old.generation != generation {
            return Ok(());
        }
        if last.as_ref().is_none_or(|(ended, _)| *ended < asked) {
            match Box::pin(self.dial_round(&old, same)).await {
                Ok(member) => {
                    *last = None;
                    self.member.send_replace(Arc::new(member));
                    // A member that was left for a new login, or that is slow, answers what is under
                    // way there. To send all that again would make it slower.
                    if !same && self.source.is_ours() && self.health.is_silent() {
                        old.left.cancel();
                    }
                }
                Err(failure) => *last = Some((Clock::Boot.now(), failure)),
            }
        }
        last.clone().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Dials each member once, until one accepts the login.
    /// Returns the reason of the last one, or of the first one that refused the login.
    async fn dial_round(&self, old: &Member, same: bool) -> Result<Member, Failure> {
        if !same {
            self.endpoints.failed(&old.endpoint);
        }
        let mut to_try = self.endpoints.to_try();
        if same {
            // Not twice: the limit is shared by all that are tried.
            to_try.retain(|endpoint| !Arc::ptr_eq(endpoint, &old.endpoint));
            to_try.insert(0, old.endpoint.clone());
        }
        let (limit, request) = (self.limits.of_each(to_try.len()), self.limits.request);
        let mut failure = Failure::senseless("no endpoints");
        for endpoint in to_try {
            let dialed = self.source.dial(&endpoint, old.generation + 1, same, limit.min(request));
            match Box::pin(Clock::Boot.timeout(limit, dialed)).await {
                Some(Ok(member)) => return Ok(member),
                // All members know the same users.
                Some(Err(refused)) if refused.kind == FailureKind::Denied => return Err(refused),
                Some(Err(failed)) => failure = failed,
                None => failure = Failure::silent(limit),
            }
            self.endpoints.failed(&endpoint);
        }
        Err(failure)
    }
}
