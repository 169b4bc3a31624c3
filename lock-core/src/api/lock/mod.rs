//! A lock and its options.

mod acquire;
pub(crate) mod attempt;
mod reenter;
pub(crate) mod tries;

use std::{sync::Arc, time::Duration};

use crate::{
    Kind, LockName, Owner, Request, Result, Term,
    api::{client::Client, options::options},
    driver::{duration::shown, validity},
    keep::errors::invalid,
};

/// The most bytes of a holder's description (64 KiB) and of a leader's value (512 KiB). Together they
/// fit into a request of each store, also if each byte of the description becomes six in JSON: the
/// least limit is ZooKeeper's, 1 MiB.
const LONGEST_HOLDER: usize = 64 * 1024;
pub(crate) const LONGEST_VALUE: usize = 512 * 1024;

/// A lock with its options, exclusive or shared. Cheap to clone; may be acquired many times.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let lock = locks.lock("orders/42")?.ttl(Duration::from_secs(10)).wait(Duration::from_secs(60));
/// let guard = lock.acquire().await?;
/// println!("fencing token {}", guard.token());
/// guard.release().await
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    pub(crate) client: Arc<Client>,
    pub(crate) request: Request,
    pub(crate) wait: Option<Duration>,
    pub(crate) through_outages: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) at_least: Duration,
    owner: Option<Owner>,
}

impl Lock {
    pub(crate) fn new(client: Arc<Client>, name: LockName, kind: Kind) -> Result<Self> {
        let guarantees = client.driver.guarantees();
        guarantees.check_kind(kind.into())?;
        let mut request = Request::new(name, guarantees.default_ttl);
        request.kind = kind;
        Ok(Self {
            client,
            request,
            wait: None,
            through_outages: false,
            max_hold: None,
            at_least: Duration::ZERO,
            owner: None,
        })
    }

    /// The same lock of another kind.
    #[cfg(feature = "properties")]
    pub(crate) fn kind(mut self, kind: Kind) -> Result<Self> {
        self.client.driver.guarantees().check_kind(kind.into())?;
        self.request.kind = kind;
        Ok(self)
    }

    options!(|self| self);

    /// Acquires as this owner, which may acquire again what it holds: see [`Owner`]. Default: no
    /// owner, so every acquire waits for every other.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Refuses the first option that does not fit, and every call after the end of the runtime.
    pub(crate) fn check(&self) -> Result<()> {
        self.client.home.check_process()?;
        let Request { ttl, term, .. } = self.request;
        self.client.driver.guarantees().check_ttl(ttl)?;
        check_length("holder", self.request.holder.len(), LONGEST_HOLDER)?;
        check_value(self.request.value.as_deref().unwrap_or_default())?;
        if self.max_hold.is_some_and(|limit| limit.is_zero()) {
            return Err(invalid("max_hold", shown(Duration::ZERO), "more than nothing"));
        }
        let margin = validity::margin(ttl);
        let term = (term == Term::Fixed).then(|| ttl.saturating_sub(margin));
        let end = self.max_hold.into_iter().chain(term).min().unwrap_or(Duration::MAX);
        let most = end.saturating_sub(margin);
        if self.at_least <= most {
            return Ok(());
        }
        let allowed = format!("up to {}, as the hold ends after {}", shown(most), shown(end));
        Err(invalid("at_least", shown(self.at_least), allowed))
    }
}

/// Refuses a leader's value that a store may not take, before it is sent.
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check_length("value", value.len(), LONGEST_VALUE)
}

fn check_length(option: &str, length: usize, most: usize) -> Result<()> {
    if length <= most {
        return Ok(());
    }
    Err(invalid(option, format!("{length} bytes"), format!("up to {most} bytes")))
}
