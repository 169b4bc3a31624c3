//! The driver.

use std::{collections::HashSet, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{
    Attempt, BoxFuture, Clock, DistributedLock, Effect, Entry, Error, FencingToken, Guarantees,
    Lease, LockName, Reach, Request, Result, TokenFloor,
    keep::{
        errors::{denied, invalid, rejected, unavailable, unsupported},
        limits,
    },
    polling::Polling,
};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    config::RedlockConfig,
    fault::Fault,
    node::{Node, Runs},
    promises::{STORE, cautions, guarantees},
    store::Majority,
};
use crate::{config::Address, wire::dial::Dial};

/// A connect waits this much longer for the nodes that a majority does not need.
const GRACE: Duration = Duration::from_millis(200);
/// What is left of a close's time for acquires under way, if locks cannot be given back.
const LAST: Duration = Duration::from_secs(1);
/// How often a revocation asks while a majority still shows the attempt.
const REVOCATIONS: usize = 4;

/// Locks on several independent Redis servers, each held by the votes of a majority (Redlock).
///
/// Exclusive locks only, without order; waiters poll. `docs/stores/redlock.md` says what that
/// promises, and what it does not.
///
/// # Clock jumps
///
/// A server whose wall clock jumps forward forgets its vote early. With 5 servers, a lock that has
/// exactly 3 votes can be granted to a second holder after **one** such jump. Each further vote
/// carries one more: a lock with 4 votes falls with two jumps, one with 5 votes with three. A
/// renewed lock asks nodes without a vote for theirs with each renewal, so it has all votes that it
/// can get: while other attempts wait, one of them may have such a vote for some milliseconds.
/// [`Guarantees::clock_jumps`] has the numbers for each deployment. The first holder hears of it when nodes without its vote leave it no majority: at its
/// next renewal, within an eighth of a TTL, if it reaches them; at its deadline otherwise.
///
/// ```no_run
/// # mod distlock { pub use lock_core::*; pub use lock_redis as redis; }
/// use distlock::{Locks, StoreUrl, redis::{Redlock, RedlockConfig}};
///
/// # async fn example() -> lock_core::Result<()> {
/// let url = StoreUrl::parse("redlock://r1,r2,r3,r4,r5?prefix=app:")?;
/// let config = RedlockConfig::from_url(&url)?;
/// let locks = Locks::new(Redlock::connect(config).await?);
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Redlock {
    polling: Polling<Majority>,
}

impl Redlock {
    /// Connects to the servers. A majority must be reached; the others may follow.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for wrong addresses or times, and if one server is listed under two
    /// addresses; [`Error::Unavailable`] if a majority cannot be reached, with the reason of each;
    /// [`Error::Denied`] if it refuses the login; [`Error::Rejected`] if it is a replica, or
    /// belongs to a cluster.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connections.
    pub fn connect(config: RedlockConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            config.check()?;
            let guarantees = guarantees(&config);
            guarantees.check_ttl(config.default_ttl())?;
            let runs = std::sync::Arc::new(Runs::new(config.longest_ttl(), &config.nodes));
            let dial = Dial::new(&config.server())?;
            let node = |(number, address): (usize, &Address)| {
                Node::new(address.clone(), number, dial.clone(), runs.clone())
            };
            let nodes: Vec<_> = config.nodes.iter().enumerate().map(node).collect();
            let mut majority = Majority::new(nodes, config, guarantees);
            majority.connect(dial.limit).await?;
            majority.guarantees.cautions = cautions(&majority.nodes);
            Ok(Self { polling: Polling::new(majority) })
        })
    }
}

impl Majority {
    /// Connects to all nodes, and keeps them connected.
    async fn connect(&self, limit: Duration) -> Result<()> {
        let connect = async |number: usize| (number, self.nodes[number].connect().await);
        let mut open: FuturesUnordered<_> = (0..self.nodes.len()).map(connect).collect();
        let (sent, mut up, mut faults) = (Clock::Boot.now(), HashSet::new(), Vec::new());
        let mut wait = limit * 2;
        while let Ok(Some((number, connected))) = timeout(wait, open.next()).await {
            match connected {
                Ok(()) => drop(up.insert(number)),
                Err(fault) if fault.is_twin() => {
                    let allowed = format!("each server once; {fault}");
                    return Err(invalid("nodes", &self.nodes[number].address, allowed));
                }
                Err(fault) => faults.push((number, fault)),
            }
            if up.len() >= self.needed() {
                wait = wait.min(Clock::Boot.now().since(sent) * 4 + GRACE);
            }
        }
        if up.len() < self.needed() {
            return Err(self.not_connected(&faults));
        }
        self.nodes.iter().for_each(Node::stay_connected);
        Ok(())
    }

    fn not_connected(&self, faults: &[(usize, Fault)]) -> Error {
        use std::io::ErrorKind::{InvalidData, PermissionDenied};
        let outage = self.outage(faults.iter().map(|(number, fault)| (*number, fault)));
        match outage.kind() {
            PermissionDenied => denied(STORE, "connect", outage),
            InvalidData => rejected(STORE, "connect", Effect::None, outage),
            _ => unavailable(STORE, "connect", Effect::None, outage),
        }
    }
}

#[async_trait]
impl DistributedLock for Redlock {
    fn guarantees(&self) -> &Guarantees {
        self.polling.guarantees()
    }

    fn clock(&self) -> Clock {
        self.polling.clock()
    }

    fn reach(&self) -> Option<Reach> {
        self.polling.reach()
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let _under_way = self.polling.store().begin();
        self.polling.acquire(request, attempt).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.polling.inspect(name).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.polling.names(prefix).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        let mut was_there = false;
        for _ in 0..REVOCATIONS {
            was_there |= self.polling.revoke(name, attempt).await?;
            // A renewal that crossed it may have won votes back.
            let entries = self.polling.inspect(name).await?;
            if entries.iter().all(|entry| entry.attempt != Some(attempt)) {
                break;
            }
        }
        Ok(was_there)
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        Err(no_floor())
    }

    async fn raise_token_floor(&self, _above: FencingToken) -> Result<TokenFloor> {
        Err(no_floor())
    }

    async fn close(&self) -> Result<()> {
        // Without a majority, giving a lock back is tried for its TTL, which may be a day.
        let deadline = Clock::Boot.now() + limits::CLOSE;
        let closed = timeout(limits::CLOSE - LAST, self.polling.close()).await;
        // Acquires that are under way end, and take their votes back first. What is still tried ends
        // with the nodes.
        self.polling.store().close(deadline).await;
        closed.unwrap_or_else(|_| {
            let why = "too few nodes have confirmed in time; the locks end with their TTL";
            Err(unavailable(STORE, "close", Effect::Unknown, why))
        })
    }
}

fn no_floor() -> Error {
    unsupported(STORE, "keep a token floor: no step is atomic on all servers")
}
