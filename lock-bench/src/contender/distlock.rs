//! distlock.

use std::time::Duration;

use ::distlock::{Lock, LockGuard, Locks, Semaphore, StoreUrl};
use async_trait::async_trait;

use super::{Asked, Client, Opening, Role, Worker};
use crate::{Failure, Kind, Workload};

pub(super) fn open(Asked { text, role, workload, .. }: Asked) -> Opening {
    Box::pin(async move {
        let locks = ::distlock::connect(full(&text, role, workload.ttl)?).await?;
        Ok(Box::new(Connected { locks, workload }) as Box<dyn Client>)
    })
}

/// The URL with its mode, and with the TTL unless it has one: a client of ZooKeeper has a session
/// from its connect on, and one of another TTL than the locks' would be idle beside it.
fn full(url: &str, role: Role, ttl: Option<Duration>) -> Result<String, Failure> {
    let has_ttl = StoreUrl::parse(url)?.options().text("ttl").is_some();
    let ttl = ttl.filter(|_| !has_ttl).map(|ttl| format!("ttl={}ms", ttl.as_millis()));
    let mode = (role == Role::Unordered).then(|| "mode=simple".to_owned());
    Ok([mode, ttl].into_iter().flatten().fold(url.to_owned(), |url, option| {
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}{option}")
    }))
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
        let ttl = Some(Duration::from_millis(2500));
        let url = |url: &str| full(url, Role::Unordered, ttl).unwrap();
        assert_eq!(url("redis://h"), "redis://h?mode=simple&ttl=2500ms");
        assert_eq!(url("redis://h?ttl=9s"), "redis://h?ttl=9s&mode=simple");
    }
}
