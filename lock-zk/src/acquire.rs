//! One attempt to get a lock.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt, Clock, Effect, Error, Instant, Lease, Request, Result, Term, Validity, Wait,
    deadline::margin, trace, wall_clock,
};
use serde::Serialize;
use zookeeper_client::{Acls, CreateMode, Error as ZkError, EventType};

use crate::{
    entry::{Ending, Entry, Node},
    error::{self, STORE},
    lease::ZkLease,
    queue,
    session::{End, Session},
};

/// One attempt in one session.
pub(crate) struct Candidate {
    session: Arc<Session>,
    directory: String,
    acls: Acls<'static>,
    request: Request,
    attempt: Attempt,
    entry: Arc<Entry>,
    began: Instant,
}

/// What an entry says about itself; its attempt is in the node's name.
#[derive(Serialize)]
struct Note<'a> {
    holder: &'a str,
    since: u64,
}

/// What a waiter does next.
enum Next {
    Hold,
    Look,
}

impl Candidate {
    pub(crate) fn new(
        session: Arc<Session>,
        directory: String,
        acls: Acls<'static>,
        request: Request,
        attempt: Attempt,
    ) -> Self {
        let entry = Arc::new(Entry::new(attempt.id(), request.term));
        let began = Clock::Boot.now();
        Self { session, directory, acls, request, attempt, entry, began }
    }

    /// Waits for the lock. Whatever the attempt left in the store is gone again when this fails.
    pub(crate) async fn run(&self) -> Result<Box<dyn Lease>> {
        self.session.add(&self.entry);
        let result = tokio::select! {
            biased;
            result = self.line_up() => result,
            () = self.session.over() => Err(self.session.error("acquire")),
            () = self.attempt.cancelled() => Err(cancelled()),
        };
        if result.is_err() {
            self.leave().await;
        }
        result
    }

    /// Whether the same attempt may begin again in a new session: this one was over, and nobody had
    /// noticed, before the attempt had a place in the queue to lose. Somebody who has already
    /// waited for a good part of the TTL is told of the outage instead.
    pub(crate) fn may_begin_again(&self) -> bool {
        let ended_before = match self.session.end() {
            Some(End::Ended) => true,
            Some(End::Silent) => Clock::Boot.now().since(self.began) < self.session.ttl() / 2,
            Some(End::Closed) | None => false,
        };
        ended_before && self.entry.node().is_none()
    }

    /// The same attempt in a new session.
    pub(crate) fn again(self, session: Arc<Session>) -> Self {
        Self::new(session, self.directory, self.acls, self.request, self.attempt)
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.request.ttl
    }

    async fn line_up(&self) -> Result<Box<dyn Lease>> {
        if self.request.wait == Wait::Try {
            // A node of ours would make others wait for it. So none while anybody is there.
            let children = self.session.list(&self.directory).await?;
            if children.iter().any(|child| queue::sequence(child).is_some()) {
                return Err(self.contended());
            }
        }
        let (node, mut children) = self.enter().await?;
        let mut queued = false;
        loop {
            let place = queue::place(&children, node.name(), node.sequence);
            let next = match place.map(|place| (place.ahead, place.predecessor)) {
                None => return Err(vanished()),
                Some((ahead, Some(predecessor))) => {
                    if self.request.wait == Wait::Try {
                        return Err(self.contended());
                    }
                    if !std::mem::replace(&mut queued, true) {
                        trace::queued(&self.request.name, self.attempt.id(), ahead);
                    }
                    self.wait_behind(predecessor, ahead == 1).await?
                }
                Some((_, None)) => Next::Hold,
            };
            if let Next::Hold = next
                && let Some(lease) = self.hold(node).await?
            {
                return Ok(lease);
            }
            children = self.session.list(&self.directory).await?;
        }
    }

    /// Creates the node and lists the queue in one flight: the server keeps the order of a session's
    /// requests, so the list shows everybody who is before the node.
    async fn enter(&self) -> Result<(&Node, Vec<String>)> {
        let stem = format!("{}/{}", self.directory, queue::stem(self.attempt.id()));
        let note = self.note();
        let options = CreateMode::EphemeralSequential.with_acls(self.acls);
        self.entry.ask();
        loop {
            let exchange = self.session.begin()?;
            let create = exchange.client.create(&stem, &note, &options);
            let list = exchange.client.list_children(&self.directory);
            let (created, listed) = tokio::join!(exchange.answer(create), exchange.answer(list));
            let node = match created {
                Ok((stat, sequence)) => self.session.adopt(format!("{stem}{sequence}"), &stat),
                Err(ZkError::NoNode) => {
                    self.make_directory().await?;
                    continue;
                }
                Err(error) => {
                    self.session.again("create", error).await?;
                    self.session.find(&self.directory, self.attempt.id()).await?
                }
            };
            let Some(node) = node else { continue };
            let node = self.entry.created(node);
            self.session.young.add(&self.entry);
            return match listed {
                Ok(children) if queue::place(&children, node.name(), node.sequence).is_some() => {
                    Ok((node, children))
                }
                _ => Ok((node, self.session.list(&self.directory).await?)),
            };
        }
    }

    fn note(&self) -> Vec<u8> {
        let since = wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let note = Note { holder: &self.request.holder, since };
        // A text and a number always have a JSON form; a node without a note is still an entry.
        serde_json::to_vec(&note).unwrap_or_default()
    }

    /// Makes the lock's directory. The server deletes containers that have become empty.
    async fn make_directory(&self) -> Result<()> {
        let exchange = self.session.begin()?;
        let options = CreateMode::Container.with_acls(self.acls);
        match exchange.answer(exchange.client.mkdir(&self.directory, &options)).await {
            Ok(()) => Ok(()),
            Err(error) => self.session.again("create the lock's directory", error).await,
        }
    }

    /// Waits until the predecessor's end, or until it is time to look again.
    async fn wait_behind(&self, predecessor: &str, is_head: bool) -> Result<Next> {
        let path = format!("{}/{predecessor}", self.directory);
        let turn = async {
            match self.session.own_entry(predecessor) {
                Some(entry) => match entry.ended().await {
                    Ending::Passed => Ok(Next::Hold),
                    Ending::Gone => Ok(Next::Look),
                },
                None => self.watch(&path, is_head).await,
            }
        };
        tokio::pin!(turn);
        loop {
            tokio::select! {
                biased;
                _ = self.entry.ended() => return Err(vanished()),
                next = &mut turn => return next,
                // A wake-up that never comes must not stop a waiter for ever.
                () = tokio::time::sleep(self.session.ttl()) => {
                    if self.session.stat(&path).await?.is_none() {
                        return Ok(Next::Look);
                    }
                }
            }
        }
    }

    /// Waits until the predecessor's node changes.
    ///
    /// If it was the head, its deletion is the grant: everything before the own node is gone then,
    /// and lower sequences never appear later.
    async fn watch(&self, path: &str, is_head: bool) -> Result<Next> {
        let exchange = self.session.begin()?;
        // Not `exists`: that would leave a watch behind on a node that is gone already.
        let armed = exchange.answer(exchange.client.get_and_watch_data(path)).await;
        // The client ends its session when nobody has a copy of it.
        drop(exchange);
        match armed {
            Ok((_, _, watcher)) => match watcher.changed().await.event_type {
                EventType::NodeDeleted if is_head => Ok(Next::Hold),
                _ => Ok(Next::Look),
            },
            Err(ZkError::NoNode) => Ok(Next::Look),
            Err(error) => self.session.again("watch", error).await.map(|()| Next::Look),
        }
    }

    /// Becomes the holder, unless the session is not sure to live; then the caller looks again,
    /// which asks the server.
    async fn hold(&self, node: &Node) -> Result<Option<Box<dyn Lease>>> {
        if self.request.term == Term::Fixed {
            self.refresh(node).await?;
        }
        let until = self.session.safe_until();
        if Clock::Boot.now() >= until {
            return Ok(None);
        }
        let validity = Validity::new(&self.request.name, until);
        if !self.entry.hold(validity.clone()) {
            return Err(vanished());
        }
        if self.session.is_over() {
            // It may have ended before it could tell this grant.
            return Err(self.session.error("acquire"));
        }
        let (name, session) = (self.request.name.clone(), self.session.clone());
        Ok(Some(Box::new(ZkLease::new(name, session, self.entry.clone(), validity))))
    }

    /// A fixed term is never extended, so it must not begin with an old proof of life.
    async fn refresh(&self, node: &Node) -> Result<()> {
        let age: Duration = Clock::Boot.now().since(self.session.confirmed());
        if age > margin(self.session.ttl()) && self.session.stat(&node.path).await?.is_none() {
            return Err(vanished());
        }
        Ok(())
    }

    /// Removes what the attempt may have left.
    async fn leave(&self) {
        let swept = match self.entry.node() {
            Some(node) => self.session.remove(&node.path).await,
            None if self.entry.was_asked() => {
                self.session.sweep(&self.directory, self.attempt.id()).await
            }
            None => Ok(()),
        };
        if let Err(error) = swept
            && !self.session.is_over()
        {
            tracing::warn!(target: "distlock", %error, "an entry stays until its session ends");
        }
        self.session.forget(self.attempt.id());
        self.entry.gone();
    }

    fn contended(&self) -> Error {
        Error::Contended { name: self.request.name.clone() }
    }
}

/// Nobody reads it.
pub(crate) fn cancelled() -> Error {
    error::unavailable("acquire", Effect::None, "the caller has left")
}

/// A waiter's entry was deleted by somebody else: it lost its place, and is told.
fn vanished() -> Error {
    Error::Unavailable {
        store: STORE,
        op: "acquire",
        effect: Effect::None,
        source: "somebody deleted the waiting entry".into(),
    }
}
