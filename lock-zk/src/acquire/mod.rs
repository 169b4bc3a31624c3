//! One attempt to get a lock.
//!
//! ```text
//! run        line_up, until the session is over or the caller has left; after an error: leave
//!
//! line_up    a try looks first, and is refused where it would have to wait
//!            enter; wait for what `duty` says, and list again after Look; at Hold: hold
//!
//! enter      create the node and list the directory, in one flight; behind `last`, the newest
//!            exclusive attempt of this session, no list if the node is certainly right behind
//!            that one's, else the list follows
//!              no directory           enter_all makes it and the node with one transaction
//!              no answer              find: list behind a sync, which overtakes no earlier create
//!                the node is there      it is the attempt's
//!                it is not there        create it again; the first one may still come: doubt
//!
//! wait       follow the entry that `duty` names: in memory if it is this session's, else by watch
//!              it ends                the view without it may say Hold, if the own node is there
//!              the own node ends      PlaceLost: an operator has deleted it
//!              no event in a TTL      look_now_and_then asks for the entry
//!              no answer              asked again
//!
//! hold       is_there asks the leader until the session is sure to live for a third of the TTL
//!              no answer              asked again
//!              no node                PlaceLost
//!
//! release    (in lease.rs) `pass` lets in a waiter of this session; `remove` deletes the node
//!              no answer              deleted again; it may be gone by then
//!              refused                the session's janitor deletes it later
//!
//! leave      delete the node, or after a create without an answer what a list behind a sync shows
//!              no answer, refused     as for a release; without a known node: doubt
//!
//! All of these end with the session, which takes its nodes along: when the server, a TTL without
//! answers, or a raise of the token floor ends it. Holders are told, and waiters get an error. An
//! attempt without a node begins again in the next session: may_begin_again.
//! ```

mod convert;
mod enter;
mod mark;
pub(crate) mod set;

use std::{
    ops::ControlFlow::{Break, Continue},
    pin::pin,
    sync::Arc,
};

use lock_core::{
    Clock, Error, Instant, Kind, Lease, Request, Result, Validity, Wait, limit_conflict,
    validity::safe_until,
};

use crate::{
    error::{cancelled, vanished},
    layout::note::{Became, Note},
    lease::ZkLease,
    queue::view::{Ahead, Duty, Next},
    session::{
        End, Session,
        attempt::{Attempt, Leftover, News, Node},
    },
    wire::requests::{Exchange, Lane},
};

/// A grant gets at least this part of the TTL.
const LEAST_PART: u32 = 3;

/// One attempt in one session.
pub(crate) struct Acquire {
    pub(crate) session: Arc<Session>,
    pub(crate) directory: String,
    pub(crate) caller: lock_core::Attempt,
    pub(crate) attempt: Arc<Attempt>,
    began: Instant,
}

/// Works until it is done, the session is over, or the caller has left.
async fn attend<T>(
    session: &Session,
    caller: &lock_core::Attempt,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let result = tokio::select! {
        biased;
        result = work => result,
        () = session.over.cancelled() => Err(session.error("acquire")),
        () = caller.cancelled() => Err(cancelled()),
    };
    result.map_err(|error| session.ending(error))
}

impl Acquire {
    pub(crate) fn new(
        session: Arc<Session>,
        directory: String,
        request: Request,
        caller: lock_core::Attempt,
    ) -> Self {
        let attempt = Arc::new(Attempt::new(caller.id(), request));
        let began = Clock::Boot.now();
        Self { session, directory, caller, attempt, began }
    }

    /// Waits for the lock. If it fails, the attempt leaves nothing in the store.
    pub(crate) async fn run(&self) -> Result<Box<dyn Lease>> {
        self.session.add(&self.attempt);
        // Pinned here: `attend` would keep it twice.
        let result = attend(&self.session, &self.caller, pin!(self.line_up())).await;
        if result.is_err() {
            Box::pin(self.leave()).await;
        }
        result
    }

    /// Whether the same attempt may begin again in the next session, since it had no place in the
    /// queue to lose: the token floor was raised, or the session ended unnoticed. An attempt that
    /// has waited for half of the TTL returns the outage instead.
    pub(crate) fn may_begin_again(&self) -> bool {
        let may = match self.session.end() {
            Some(End::Ended | End::Raised) => true,
            Some(End::Silent) => Clock::Boot.now().since(self.began) < self.session.ttl() / 2,
            Some(End::Closed) | None => false,
        };
        may && self.attempt.node().is_none()
    }

    /// Makes the same attempt anew.
    pub(crate) fn again(self, session: Arc<Session>) -> Self {
        let again = Self::new(session, self.directory, self.attempt.request.clone(), self.caller);
        again.attempt.begin_again();
        again
    }

    /// Which lane its requests take.
    pub(crate) fn lane(&self) -> Lane {
        match self.attempt.request.wait {
            Wait::Try => Lane::Try,
            _ => Lane::Acquire,
        }
    }

    async fn line_up(&self) -> Result<Box<dyn Lease>> {
        let mut ahead = match self.attempt.request.wait {
            Wait::Try => Box::pin(self.look()).await?,
            _ => Ahead::new(self.attempt.request.kind),
        };
        let (node, mut is_there) = self.enter(&mut ahead).await?;
        let (mut waited, mut told) = (false, false);
        loop {
            if !is_there {
                return Err(vanished());
            }
            match self.attempt.request.wait {
                Wait::Try => self.check_at_once(&mut ahead).await?,
                _ if !waited => self.check_limit(&ahead)?,
                _ => {}
            }
            loop {
                let duty = ahead.duty();
                if duty == Duty::Hold {
                    let lease = self.hold(node).await?;
                    self.tell_admission(waited || ahead.is_followed());
                    return Ok(lease);
                }
                let place = ahead.place();
                if !waited || (!told && place.is_some()) {
                    self.caller.queued(&self.attempt.request.name, place);
                    told = place.is_some();
                }
                waited = true;
                if let Next::Look = self.wait(&mut ahead, duty).await? {
                    break;
                }
            }
            let children = self.session.list(&self.directory, self.lane()).await?;
            is_there = ahead.see(children, node.name(), node.sequence);
        }
    }

    /// Whether a try would be admitted. Others would wait for a node of ours, so it looks before it
    /// makes one. A server of an ensemble may not know yet of a release, so nothing is refused by
    /// its first answer.
    pub(crate) async fn look(&self) -> Result<Ahead> {
        let children = self.session.list(&self.directory, self.lane()).await?;
        match self.check_list(children).await {
            Err(Error::Contended { .. } | Error::InvalidOption { .. })
                if !self.session.deadline.is_standalone() =>
            {
                let children = self.session.list_after_sync(&self.directory, self.lane()).await?;
                self.check_list(children).await
            }
            result => result,
        }
    }

    async fn check_list(&self, children: Vec<String>) -> Result<Ahead> {
        let mut ahead = Ahead::new(self.attempt.request.kind);
        ahead.see_all(children);
        self.check_at_once(&mut ahead).await?;
        Ok(ahead)
    }

    /// Whether a try is admitted by what the directory shows.
    pub(crate) async fn check_at_once(&self, ahead: &mut Ahead) -> Result<()> {
        self.check_limit(ahead)?;
        loop {
            match ahead.duty() {
                Duty::Hold => return Ok(()),
                // The first entry may share the lock by now, which its name does not tell.
                Duty::After(0) if self.attempt.request.kind == Kind::Shared => {
                    let first = ahead.names()[0].clone();
                    let path = format!("{}/{first}", self.directory);
                    let read = Box::pin(self.session.data(&path, self.lane())).await?;
                    let data = read.unwrap_or_default();
                    if Note::became(&data) != Some(Became::Shared) {
                        return Err(self.contended());
                    }
                    ahead.learn(&first, News::Became(Became::Shared));
                }
                _ => return Err(self.contended()),
            }
        }
    }

    fn check_limit(&self, ahead: &Ahead) -> Result<()> {
        let found = ahead.other_limit();
        found.map_or(Ok(()), |found| Err(limit_conflict(&self.attempt.request, found)))
    }

    /// Tells an attempt that may have seen this one waiting that it holds its permits now. Not
    /// needed if others can only go on when these permits come back. Does not wait for the answer.
    fn tell_admission(&self, was_seen: bool) {
        match self.attempt.request.kind {
            Kind::Permit { weight, limit } if was_seen && weight < limit => {}
            _ => return,
        }
        let (session, attempt) = (self.session.clone(), self.attempt.clone());
        tokio::spawn(async move {
            let note = attempt.note(Some(Became::Admitted), None);
            if let Err(error) = session.write(&attempt, &note).await
                && !session.is_over()
            {
                tracing::debug!(target: "distlock", %error, "the next one looks by itself later");
            }
        });
    }

    /// Becomes the holder. Asks the leader as long as the session is not sure to live for long
    /// enough: renewals need a while to prove more. Slow servers may never prove a third of a short
    /// TTL. After a TTL the grant takes what renewals can keep: the time for two of them.
    pub(crate) async fn hold(&self, node: &Node) -> Result<Box<dyn Lease>> {
        let deadline = &self.session.deadline;
        let patience = Clock::Boot.now() + deadline.ttl;
        let granted = || match Clock::Boot.now() < patience {
            true => deadline.of_grant(deadline.ttl / LEAST_PART),
            false => deadline.of_grant(deadline.pace() * 2),
        };
        let until = loop {
            if let Some(until) = granted() {
                break until;
            }
            if Box::pin(self.is_there(node)).await? && granted().is_none() {
                Box::pin(Clock::Boot.sleep(deadline.pace())).await;
            }
        };
        let term_end = safe_until(Clock::Boot.now(), self.session.ttl());
        self.attempt.set_term_end(term_end);
        let validity = Validity::new(&self.attempt.request.name, until);
        if !self.attempt.hold(validity.clone()) {
            return Err(vanished());
        }
        if self.session.is_over() || self.session.may_not_tell() {
            // It may have ended before it could tell this grant of its end.
            return Err(self.session.error("acquire"));
        }
        let (session, attempt) = (self.session.clone(), self.attempt.clone());
        Ok(Box::new(ZkLease::new(session, attempt, validity)))
    }

    /// Asks the leader whether the node is there; `false` if there was no answer.
    async fn is_there(&self, node: &Node) -> Result<bool> {
        let ask = |exchange: Arc<Exchange>| async move { exchange.ask_leader(&node.path).await };
        match self.session.once("exists", Lane::First, ask).await? {
            Break(Some(())) => Ok(true),
            Break(None) => Err(vanished()),
            Continue(()) => Ok(false),
        }
    }

    /// Removes all that the attempt may have left. If the removal fails, the session's janitor does
    /// it later.
    pub(crate) async fn leave(&self) {
        let (session, node) = (&self.session, self.attempt.node());
        let removed = match node {
            Some(node) => session.remove(&node.path).await.map(drop),
            None if self.attempt.was_asked() => self.remove_listed().await,
            None => return self.left(),
        };
        self.left();
        let is_left = removed.is_err() && !session.is_over();
        match node {
            Some(node) if is_left => session.left.add(Leftover::Node(node.path.clone())),
            // The creation may be one of the requests that got no answer.
            None if is_left || session.broke_since(self.began) => {
                session.doubt(&self.directory, self.attempt.id);
            }
            _ => {}
        }
    }

    /// Removes all nodes that the attempt may have, as far as a list shows them.
    async fn remove_listed(&self) -> Result<()> {
        for name in self.session.nodes_of(&self.directory, self.attempt.id).await? {
            self.session.remove(&format!("{}/{name}", self.directory)).await?;
        }
        Ok(())
    }

    /// Marks the attempt as gone: nothing of it is left in the store.
    pub(crate) fn left(&self) {
        self.session.forget(self.caller.id());
        self.attempt.gone();
    }

    fn contended(&self) -> Error {
        Error::Contended { name: self.attempt.request.name.clone() }
    }
}
