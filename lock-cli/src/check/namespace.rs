//! A driver whose names are all below a prefix.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use distlock::{
    Entry, Error, FencingToken, Guarantees, LockName, Mark, Result, Ticket, TokenFloor,
};
use lock_core::{
    Attempt, Clock, Diagnosis, DistributedLock, Lease, Observed, Reach, Request, Wish,
};
use tokio::sync::mpsc;
use uuid::Uuid;

/// It neither shows nor touches names of other clients.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) driver: Arc<dyn DistributedLock>,
    pub(super) prefix: String,
    pub(super) used: Used,
}

/// The whole names of all requests: only these can have entries left. Other clients may have
/// millions of names, and a list of the names in use would go through them.
#[derive(Clone, Debug, Default)]
pub(super) struct Used(Arc<Mutex<BTreeSet<LockName>>>);

impl Used {
    fn note(&self, name: &LockName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
    }

    /// The names that start with `prefix`.
    pub(super) fn below(&self, prefix: &str) -> Vec<LockName> {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter(|name| name.as_str().starts_with(prefix)).cloned().collect()
    }
}

impl Namespace {
    fn outer(&self, name: &LockName) -> Result<LockName> {
        LockName::new(format!("{}{name}", self.prefix))
    }

    fn inner(&self, name: &LockName) -> Option<LockName> {
        LockName::new(name.as_str().strip_prefix(&self.prefix)?).ok()
    }

    fn request(&self, request: Request) -> Result<Request> {
        let name = self.outer(&request.name)?;
        self.used.note(&name);
        let mut request = request;
        request.name = name;
        Ok(request)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl DistributedLock for Namespace {
    fn guarantees(&self) -> &Guarantees {
        self.driver.guarantees()
    }

    fn clock(&self) -> Clock {
        self.driver.clock()
    }

    fn reach(&self) -> Option<Reach> {
        self.driver.reach()
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        self.driver.acquire(self.request(request)?, attempt).await
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let outer = |(request, attempt): Wish| Ok((self.request(request)?, attempt));
        self.driver.try_all(wishes.into_iter().map(outer).collect::<Result<_>>()?).await
    }

    /// The driver uses the request's name.
    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.driver.adopt(self.request(request)?, attempt, ticket).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.driver.inspect(&self.outer(name)?).await
    }

    async fn ping(&self, name: &LockName) -> Result<()> {
        self.driver.ping(&self.outer(name)?).await
    }

    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        self.driver.diagnose(&self.outer(name)?, attempts).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        self.driver.observe(&self.outer(name)?).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        let names = self.driver.names(&format!("{}{prefix}", self.prefix)).await?;
        Ok(names.iter().filter_map(|name| self.inner(name)).collect())
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.driver.revoke(&self.outer(name)?, attempt).await
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.driver.token_floor().await
    }

    /// It would end the locks of all clients, also of those that are not checked.
    async fn raise_token_floor(&self, _: FencingToken) -> Result<TokenFloor> {
        let what = "raise the token floor for a check".to_owned();
        Err(Error::Unsupported { store: self.guarantees().store, what })
    }

    async fn below_token_floor(&self, _: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        Ok(Vec::new())
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        self.driver.mark(&self.outer(name)?).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        let marks = self.driver.marks(&format!("{}{prefix}", self.prefix)).await?.into_iter();
        Ok(marks.filter_map(|(name, mark)| Some((self.inner(&name)?, mark))).collect())
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        self.driver.clear_mark(&self.outer(name)?).await
    }

    async fn close(&self) -> Result<()> {
        self.driver.close().await
    }
}
