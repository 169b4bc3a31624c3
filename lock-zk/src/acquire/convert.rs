//! Conversion of a shared grant to an exclusive one.

use std::sync::Arc;

use lock_core::{Kind, Result, Validity, Wait};

use crate::{
    acquire::Acquire,
    lease::{ZkLease, path},
    queue::view::Ahead,
    session::attempt::Attempt,
};

impl ZkLease {
    /// Makes an attempt to hold the same lock alone.
    pub(crate) fn upgrade(&self, old: &Attempt) -> Acquire {
        let mut request = old.request.clone();
        (request.kind, request.wait) = (Kind::Exclusive, Wait::Try);
        let directory = path(old).rsplit_once('/').map_or("", |(directory, _)| directory);
        let caller = lock_core::Attempt::new();
        let attempt = Arc::new(Attempt::upgrade(old, caller.id(), request.clone()));
        let (session, directory) = (self.session.clone(), directory.to_owned());
        Acquire { attempt, ..Acquire::new(session, directory, request, caller) }
    }
}

impl Acquire {
    /// Takes the lock alone for the holder that shares it by `old`, if no other attempt is there.
    /// Creates a new node, which takes the grant over, and deletes the old one. Changes nothing
    /// otherwise.
    ///
    /// An attempt that comes meanwhile stands behind the new node. Two holders that try at the same
    /// time see each other's nodes.
    pub(crate) async fn replace(&self, old: &Attempt, validity: &Validity) -> Result<bool> {
        self.session.add(&self.attempt);
        let succeeded = self.session.over.run_until_cancelled(self.succeed(old, validity)).await;
        let result = succeeded.unwrap_or_else(|| Err(self.session.error("upgrade")));
        if !matches!(result, Ok(true)) {
            self.leave().await;
        }
        result
    }

    async fn succeed(&self, old: &Attempt, validity: &Validity) -> Result<bool> {
        let mut ahead = Ahead::new(self.attempt.request.kind);
        // Other attempts would wait for a node of ours, so it makes none while any of them is
        // there.
        ahead.see_all(self.session.list(&self.directory, self.lane()).await?);
        if !self.is_alone(&ahead, old) && !self.session.deadline.is_standalone() {
            // This server may not know yet that the others have left: see `look`.
            ahead.see_all(self.session.list_after_sync(&self.directory, self.lane()).await?);
        }
        if !self.is_alone(&ahead, old) {
            return Ok(false);
        }
        let (_, is_there) = self.enter(&mut ahead).await?;
        if !is_there || !self.is_alone(&ahead, old) {
            return Ok(false);
        }
        // From here on the end of the old node is no loss, unless it was lost before.
        if !self.attempt.hold(validity.clone()) || !old.pass() {
            return Ok(false);
        }
        let Some(before) = old.node() else { return Ok(false) };
        if !self.session.remove(&before.path).await? {
            // It was deleted from outside, which ends this grant.
            self.attempt.gone();
            return Ok(false);
        }
        self.session.forget(old.id);
        Ok(true)
    }

    /// Whether only the old attempt is before this one. An attempt that was given up in this
    /// process counts as gone.
    fn is_alone(&self, ahead: &Ahead, old: &Attempt) -> bool {
        let is_old = |name: &String| old.node().is_some_and(|node| node.name() == name);
        if !ahead.names().iter().any(is_old) {
            old.gone();
            return false;
        }
        let has_ended =
            |name| self.session.own_attempt(name).is_some_and(|attempt| attempt.has_ended());
        ahead.names().iter().all(|name| is_old(name) || has_ended(name))
    }
}
