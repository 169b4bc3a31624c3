//! A client of the store.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Attempt, BoxFuture, Clock, DistributedLock, Effect, Entry, Fairness, Fencing, FencingToken,
    FixedTerm, Guarantees, Lease, LockKind, LockName, LossSignal, Mark, Observed, Overlap, Reach,
    Request, Result, Ticket, TokenFloor, Wake, Wish,
    keep::{errors::unavailable, limits::LONGEST_TTL},
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    MemoryConfig, MemoryStore,
    session::{Session, renewal},
};

/// One client of a [`MemoryStore`]: like a process of its own, with a network of its own.
#[derive(Debug)]
pub struct MemoryLock {
    pub(crate) session: Arc<Session>,
    guarantees: Guarantees,
}

impl MemoryLock {
    /// Connects to a store. In the whole process, the same name is the same store.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the TTL is out of range;
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) after
    /// [`refuse_connects`](MemoryStore::refuse_connects).
    ///
    /// # Cancel safety
    ///
    /// It does not wait.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub fn connect(config: MemoryConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let store = MemoryStore::named(&config.name);
            if store.refuses() {
                let why = "the store refuses connects";
                return Err(unavailable("memory", "connect", Effect::None, why));
            }
            let mut client = store.client();
            if let Some(ttl) = config.ttl {
                client.guarantees.check_ttl(ttl)?;
                client.guarantees.default_ttl = ttl;
            }
            Ok(client)
        })
    }

    /// Makes a request of no attempt, and returns its reply.
    async fn ask<T>(&self, op: &'static str, act: impl FnMut(&MemoryStore) -> T) -> Result<T> {
        self.session.client.check_open()?;
        self.session.request(op, self.guarantees.default_ttl, act).await
    }
}

impl MemoryStore {
    /// Connects. For blocking locks: `blocking::Locks::new(|| store.client())`.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    pub fn client(&self) -> MemoryLock {
        let session = Session::start(self.clone());
        renewal::start(&session);
        MemoryLock { session, guarantees: guarantees() }
    }
}

fn guarantees() -> Guarantees {
    let mut guarantees = Guarantees::least("memory");
    guarantees.kinds = LockKind::ALL;
    guarantees.survives.restart = true;
    // There is no node to lose, and tests run programs that require it.
    guarantees.survives.failover = true;
    guarantees.overlaps = vec![Overlap::Revoked, Overlap::Deleted];
    guarantees.fairness = Fairness::Fifo;
    guarantees.wake = Wake::Push;
    guarantees.fencing = Fencing::Strict("a counter of the store");
    guarantees.loss = LossSignal::Push;
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.names_at_once = usize::MAX;
    guarantees.detach = true;
    guarantees.marks = Some("the end of the process");
    guarantees.ttl = Duration::from_millis(200)..=LONGEST_TTL;
    guarantees
}

#[async_trait]
impl DistributedLock for MemoryLock {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Tokio
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.session.reach.clone())
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        self.session.acquire(request, attempt).await
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        self.session.try_all(wishes).await
    }

    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.session.adopt(request, attempt, ticket).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.ask("inspect", |store| store.inspect(name)).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        let changes = self.ask("observe", |store| store.observe(name)).await?;
        Ok(self.session.observe(name.clone(), changes))
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.ask("names", |store| store.names(prefix)).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        let mut revoked = false;
        // A repeated request does not find the attempt that the first one has revoked.
        let revoke = |store: &MemoryStore| {
            revoked |= store.revoke(name, attempt);
            revoked
        };
        self.ask("revoke", revoke).await
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.ask("token floor", MemoryStore::token_floor).await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.ask("raise the token floor", |store| store.raise_token_floor(above)).await
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        self.ask("mark", |store| store.mark(name)).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        self.ask("marks", |store| store.marks(prefix)).await
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        let mut cleared = false;
        // A repeated request does not find the mark that the first one has removed.
        let clear = |store: &MemoryStore| {
            cleared |= store.clear_mark(name);
            cleared
        };
        self.ask("clear the mark", clear).await
    }

    async fn close(&self) -> Result<()> {
        let left = self.session.end();
        let leave = |store: &MemoryStore| {
            left.iter().for_each(|attempt| store.leave(&attempt.name, attempt.id));
        };
        self.session.request("close", self.guarantees.default_ttl, leave).await
    }
}
