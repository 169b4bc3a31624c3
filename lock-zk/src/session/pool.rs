//! A client's sessions: one per TTL, since ZooKeeper's timeout belongs to the session.

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared},
    stream::FuturesUnordered,
};
use lock_core::{Clock, Effect, Error, Reach, Result, duration::shown};
use tokio::{runtime::Handle, sync::Notify};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Client, Error as ZkError};

use crate::{
    config::ZkConfig,
    error::{self, STORE},
    session::{Session, floor::Floor, janitor, lock, own_nodes, renewal},
    wire::nodelay,
};

/// More distinct TTLs than any program has reason for; each costs a connection and a heartbeat.
pub(crate) const MOST_SESSIONS: usize = 8;

/// How long a try to connect may take before another one starts beside it, if there are several
/// hosts; and how many there may be.
const HEDGE: Duration = Duration::from_millis(200);
const MOST_TRIES: usize = 16;

/// A client's sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    config: ZkConfig,
    tick: Duration,
    runtime: Handle,
    ports: Arc<[u16]>,
    hosts: Arc<[String]>,
    slots: Mutex<Slots>,
    pub(crate) reach: Reach,
    /// For what works in the background: the client is closed or dropped.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Slots {
    closed: bool,
    by_ttl: HashMap<Duration, Slot>,
    /// Those that take no new locks, and end with their last one.
    retired: Vec<Weak<Session>>,
}

#[derive(Debug)]
enum Slot {
    Open(Arc<Session>),
    /// Everybody who asks meanwhile waits for the same answer.
    Opening(Opening),
}

type Opening = Shared<BoxFuture<'static, Result<Arc<Session>, ZkError>>>;

impl Sessions {
    /// No session yet. Their tasks will run in the current runtime. `tick` is that of the servers,
    /// or longer.
    pub(crate) fn new(config: ZkConfig, tick: Duration) -> Arc<Self> {
        let ports = config.hosts.iter().filter_map(|host| host.rsplit_once(':')?.1.parse().ok());
        Arc::new(Self {
            ports: ports.collect(),
            hosts: config.hosts.clone().into(),
            config,
            tick,
            runtime: Handle::current(),
            slots: Mutex::default(),
            reach: Reach::default(),
            closed: CancellationToken::new(),
        })
    }

    pub(crate) fn config(&self) -> &ZkConfig {
        &self.config
    }

    /// The live session of a TTL; opens one if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if none could be opened within one TTL, [`Error::InvalidOption`] if
    /// the server does not grant the TTL, [`Error::Closed`].
    pub(crate) async fn get(self: &Arc<Self>, ttl: Duration) -> Result<Arc<Session>> {
        // The server counts in milliseconds.
        let ttl = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let opening = {
            let mut slots = self.slots();
            if slots.closed {
                return Err(Error::closed(STORE));
            }
            slots.retire_if(ttl, |session| session.has_lost_all());
            match slots.by_ttl.get(&ttl) {
                Some(Slot::Open(session)) if !session.is_over() => return Ok(session.clone()),
                Some(Slot::Opening(opening)) => opening.clone(),
                _ => {
                    slots.make_room(ttl)?;
                    let opening = self.open(ttl);
                    slots.by_ttl.insert(ttl, Slot::Opening(opening.clone()));
                    opening
                }
            }
        };
        match opening.await {
            Ok(session) if session.ttl() != ttl => Err(clamped(ttl, session.ttl())),
            Ok(session) => Ok(session),
            Err(ZkError::ClientClosed) => Err(Error::closed(STORE)),
            Err(ZkError::Timeout) => {
                let source = format!("no server opened a session within {}", shown(ttl));
                Err(error::unavailable("connect", Effect::None, source))
            }
            Err(error) => Err(error::read_failed("connect", error)),
        }
    }

    /// Any live session, for questions; opens one of this TTL if there is none.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub(crate) async fn any(self: &Arc<Self>, ttl: Duration) -> Result<Arc<Session>> {
        let open = self.slots().by_ttl.values().find_map(|slot| match slot {
            Slot::Open(session) if !session.is_over() => Some(session.clone()),
            _ => None,
        });
        match open {
            Some(session) => Ok(session),
            None => self.get(ttl).await,
        }
    }

    /// Gives no new locks to a session: it ends when its last lock is released.
    pub(crate) fn retire(&self, session: &Arc<Session>) {
        self.slots().retire_if(session.ttl(), |open| Arc::ptr_eq(open, session));
    }

    /// Cancelled when the client is closed or dropped.
    pub(crate) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Starts something in the client's runtime.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Ends all sessions, and lets no new ones begin.
    ///
    /// # Errors
    ///
    /// The last session's that the server did not confirm.
    pub(crate) async fn close(&self) -> Result<()> {
        self.closed.cancel();
        let open: Vec<_> = {
            let mut slots = self.slots();
            slots.closed = true;
            let retired: Vec<_> = slots.retired.drain(..).collect();
            let open = slots.by_ttl.drain().filter_map(|(_, slot)| slot.open());
            open.chain(retired.iter().filter_map(Weak::upgrade)).collect()
        };
        let ends = futures_util::future::join_all(open.iter().map(|session| session.close()));
        ends.await.into_iter().collect()
    }

    /// Opens a session in a task of its own: whoever asked first may leave.
    fn open(self: &Arc<Self>, ttl: Duration) -> Opening {
        let client = connect(self.config.clone(), ttl);
        let weak = Arc::downgrade(self);
        let task = self.runtime.spawn(async move {
            let sent = Clock::Boot.now();
            let opened = match tokio::time::timeout(ttl, client).await {
                Ok(opened) => opened,
                Err(_) => Err(ZkError::Timeout),
            };
            let Some(sessions) = weak.upgrade() else { return Err(ZkError::ClientClosed) };
            let session = match opened {
                Ok(client) => Ok(sessions.start(client, sent).await),
                Err(error) => Err(error),
            };
            sessions.opened(ttl, session)
        });
        async { task.await.unwrap_or(Err(ZkError::ClientClosed)) }.boxed().shared()
    }

    fn opened(
        &self,
        ttl: Duration,
        session: Result<Arc<Session>, ZkError>,
    ) -> Result<Arc<Session>, ZkError> {
        let mut slots = self.slots();
        slots.by_ttl.remove(&ttl);
        let session = session?;
        self.reach.works();
        if slots.closed {
            return Err(ZkError::ClientClosed);
        }
        if session.ttl() == ttl {
            slots.by_ttl.insert(ttl, Slot::Open(session.clone()));
        }
        Ok(session)
    }

    /// Starts the tasks of a session. They hold it weakly and end with it.
    async fn start(self: &Arc<Self>, client: Client, sent: lock_core::Instant) -> Arc<Session> {
        nodelay::set(&self.ports).await;
        let states = client.state_watcher();
        let ttl = client.session_timeout();
        let floor = Floor::new(&self.config.prefix);
        let session = Arc::new(Session::new(client, ttl, self.tick, sent, floor));
        let weak: Weak<_> = Arc::downgrade(&session);
        let reconnected = Arc::new(Notify::new());
        let over = session.over_token();
        let chores = session.chores.more();
        self.runtime.spawn(janitor::work(weak.clone(), Arc::downgrade(self), over.clone(), chores));
        self.runtime.spawn(renewal::beat(weak.clone(), over.clone(), reconnected.clone()));
        self.runtime.spawn(own_nodes::watch(weak.clone(), over.clone(), session.young.first()));
        self.runtime.spawn(own_nodes::look(weak.clone(), over, session.young.crowded()));
        // A break meanwhile is told below.
        renewal::ask_deployment(weak.clone(), self.hosts.clone()).await;
        // So that the first acquire need not. If it fails, that one does.
        drop(tokio::time::timeout(ttl / 4, session.above()).await);
        self.runtime.spawn(renewal::follow(
            weak,
            states,
            session.terminated.clone(),
            reconnected,
            self.ports.clone(),
            self.hosts.clone(),
            self.reach.clone(),
        ));
        session
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        lock(&self.slots)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Slot {
    fn open(self) -> Option<Arc<Session>> {
        match self {
            Self::Open(session) => Some(session),
            Self::Opening(_) => None,
        }
    }

    /// Whether nobody uses it: no lease, no attempt, no entry.
    fn is_idle(&self) -> bool {
        matches!(self, Self::Open(session) if session.is_over() || Arc::strong_count(session) == 1)
    }
}

impl Slots {
    /// Gives no new locks to the open session of this TTL if this is so of it.
    fn retire_if(&mut self, ttl: Duration, is_so: impl Fn(&Arc<Session>) -> bool) {
        let Some(Slot::Open(session)) = self.by_ttl.get(&ttl) else { return };
        if is_so(session) {
            let retired = Arc::downgrade(session);
            self.by_ttl.remove(&ttl);
            self.retired.retain(|other| other.strong_count() > 0);
            self.retired.push(retired);
        }
    }

    /// Drops a session that nobody uses if there are too many.
    fn make_room(&mut self, ttl: Duration) -> Result<()> {
        if self.by_ttl.len() < MOST_SESSIONS || self.by_ttl.contains_key(&ttl) {
            return Ok(());
        }
        let idle = self.by_ttl.iter().find(|(_, slot)| slot.is_idle()).map(|(ttl, _)| *ttl);
        match idle.and_then(|idle| self.by_ttl.remove(&idle)) {
            Some(_) => Ok(()),
            None => Err(Error::InvalidOption {
                option: "ttl".to_owned(),
                value: shown(ttl).to_string(),
                allowed: format!(
                    "each TTL needs a session of its own, and {MOST_SESSIONS} others are in use; \
                     take one of theirs"
                ),
            }),
        }
    }
}

/// How many hosts to tell the client crate at least.
///
/// When no host can be reached, its pauses double from one round over all hosts to the next, so a
/// single host that was away for a moment longer than half the TTL would be tried again too late
/// for the session. Within a round the pauses grow slowly. So each host is told several times: this
/// many keep the longest pause within a TTL short, and outages of up to 3/4 of it are survived.
fn pacing(ttl: Duration) -> usize {
    // A TTL is at most some minutes.
    6 + usize::try_from(ttl.as_secs() / 2).unwrap_or(0).min(30)
}

/// Opens a session at any of the hosts.
///
/// The client crate tries them one after the other in random order, and gives one that swallows
/// packets two fifths of the timeout. So if there are several, more tries start beside a slow one.
/// The first to succeed wins, and the sessions of the others are closed.
async fn connect(config: ZkConfig, ttl: Duration) -> Result<Client, ZkError> {
    let ensemble = config.ensemble(pacing(ttl));
    let mut tries = FuturesUnordered::new();
    loop {
        if tries.is_empty() || config.hosts.len() > 1 && tries.len() < MOST_TRIES {
            tries.push(config.connector(ttl).connect(&ensemble));
        }
        tokio::select! {
            Some(connected) = tries.next() => return connected,
            () = tokio::time::sleep(HEDGE) => {}
        }
    }
}

fn clamped(wish: Duration, granted: Duration) -> Error {
    Error::InvalidOption {
        option: "ttl".to_owned(),
        value: shown(wish).to_string(),
        allowed: format!("the server grants {} instead", shown(granted)),
    }
}

/// Checks that a client may use a TTL.
///
/// # Errors
///
/// [`Error::InvalidOption`] with the range.
pub(crate) fn checked_ttl(ttl: Duration, range: &RangeInclusive<Duration>) -> Result<Duration> {
    if range.contains(&ttl) {
        return Ok(ttl);
    }
    Err(Error::InvalidOption {
        option: "URL option ttl".to_owned(),
        value: shown(ttl).to_string(),
        allowed: format!("this server takes {} to {}", shown(*range.start()), shown(*range.end())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_that_the_server_does_not_grant_is_refused_with_the_range() {
        let seconds = Duration::from_secs;
        let range = seconds(1)..=seconds(10);
        assert_eq!(checked_ttl(seconds(2), &range).unwrap(), seconds(2));
        let error = checked_ttl(seconds(11), &range).unwrap_err().to_string();
        assert!(error.contains("1s to 10s"), "{error}");
    }
}
