//! distlock.

use std::time::Duration;

use ::distlock::{Lock, LockGuard, Locks, Semaphore, StoreUrl};
use async_trait::async_trait;

use super::{Client, Contender, Role, Worker};
use crate::{Failure, Kind, Workload};

/// As its users connect it.
pub(super) const USUAL: Distlock = Distlock { name: "distlock", role: Role::Distlock, option: "" };
/// On Redis: without the queue, waiters poll.
pub(super) const SIMPLE: Distlock =
    Distlock { name: "distlock, mode=simple", role: Role::Unordered, option: "mode=simple" };

pub(super) struct Distlock {
    pub(super) name: &'static str,
    role: Role,
    /// What it adds to the options of the URL.
    option: &'static str,
}

struct Connected {
    locks: Locks,
    workload: Workload,
}

enum Taken {
    Lock(Lock),
    Permit(Semaphore),
}

struct Holding {
    taken: Taken,
    guard: Option<LockGuard>,
}

impl Distlock {
    /// The URL with its options, and with the TTL unless it has one: a client of ZooKeeper has a
    /// session from its connect on, and one of another TTL than the locks' would be idle beside it.
    fn url(&self, url: &str, ttl: Option<Duration>) -> Result<String, Failure> {
        let has_ttl = StoreUrl::parse(url)?.options().text("ttl").is_some();
        let ttl = ttl.filter(|_| !has_ttl).map(|ttl| format!("ttl={}ms", ttl.as_millis()));
        let options = [Some(self.option.to_owned()).filter(|option| !option.is_empty()), ttl];
        Ok(options.into_iter().flatten().fold(url.to_owned(), |url, option| {
            let mark = if url.contains('?') { '&' } else { '?' };
            format!("{url}{mark}{option}")
        }))
    }
}

#[async_trait]
impl Contender for Distlock {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn role(&self) -> Role {
        self.role
    }

    async fn open(&self, url: &str, workload: &Workload) -> Result<Box<dyn Client>, Failure> {
        let locks = ::distlock::connect(self.url(url, workload.ttl)?).await?;
        Ok(Box::new(Connected { locks, workload: workload.clone() }))
    }
}

#[async_trait]
impl Client for Connected {
    async fn worker(&self, name: &str, shared: bool) -> Result<Box<dyn Worker>, Failure> {
        let Workload { kind, ttl, .. } = self.workload;
        let taken = if kind == Kind::Permits {
            let semaphore = self.locks.semaphore(name, self.workload.permits())?;
            Taken::Permit(match ttl {
                Some(ttl) => semaphore.ttl(ttl),
                None => semaphore,
            })
        } else {
            let lock = if shared { self.locks.shared(name)? } else { self.locks.lock(name)? };
            Taken::Lock(match ttl {
                Some(ttl) => lock.ttl(ttl),
                None => lock,
            })
        };
        Ok(Box::new(Holding { taken, guard: None }))
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.locks.close().await?)
    }
}

#[async_trait]
impl Worker for Holding {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let guard = match &self.taken {
            Taken::Lock(lock) => lock.acquire().await?,
            Taken::Permit(semaphore) => semaphore.acquire().await?,
        };
        let token = guard.token().value();
        self.guard = Some(guard);
        Ok(Some(token))
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let guard = self.guard.take().ok_or("a release without a lock")?;
        Ok(guard.release().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ttl_goes_by_the_url_unless_it_has_one() {
        let url = |url: &str| SIMPLE.url(url, Some(Duration::from_millis(2500))).unwrap();
        assert_eq!(url("redis://h"), "redis://h?mode=simple&ttl=2500ms");
        assert_eq!(url("redis://h?ttl=9s"), "redis://h?ttl=9s&mode=simple");
    }
}
