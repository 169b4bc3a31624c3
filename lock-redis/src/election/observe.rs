//! Observes an election: by pushes, and by a look at the server before the first push and whenever
//! a push may be missing.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Clock, Instant, Leader, Observed, Result,
    deadline::jitter,
    keep::{
        self,
        limits::UNREAD,
        observe::{first, tell},
        wait::Waits,
    },
};
use redis::Value;
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use super::{
    leader::{Known, Looked, Next, State, Told},
    observers::Ear,
};
use crate::{
    error,
    layout::key::Key,
    session::{
        Session,
        node::{Link, Node},
        slots::Map,
    },
    wire::{failure::Failure, script, turns::Lane},
};

/// Time limit of one look. The first look waits up to twice as long for a server that answers.
const LIMIT: Duration = Duration::from_secs(2);
/// Longest time between two looks. No push announces that a lock without a value is taken, that a
/// key is deleted, or that the connection is dead.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// Longest delay of a look after a leader's lock expires. It is random, so observers do not look
/// all at once.
const EXPIRY_SLACK: Duration = Duration::from_millis(100);
/// Pause between two looks at a server that refuses for a while.
const PAUSE: Duration = Duration::from_millis(100);

/// Observes a name.
///
/// # Errors
///
/// Same as [`DistributedLock::observe`](lock_core::DistributedLock::observe).
pub(crate) async fn observe(session: &Arc<Session>, key: Key) -> Result<mpsc::Receiver<Observed>> {
    let mut observer = Observer::new(session, key);
    let now = first(session.store(), LIMIT * 2, observer.look()).await?;
    let (out, observed) = mpsc::channel(UNREAD);
    observer.told = now.clone();
    let mut link = observer.link.clone();
    // Its result borrows the link, which the last handle closes when `tell` drops it.
    let closed = async move {
        // A node of a cluster may be given up before the session ends.
        if link.wait_for(|link| matches!(link, Link::Closed)).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = tell(observer, vec![now], out) => {}
            // Ends also while earlier news is unread.
            () = closed => {}
        }
    });
    Ok(observed)
}

struct Observer {
    session: Weak<Session>,
    key: Key,
    channel: Vec<u8>,
    ear: Arc<Ear>,
    pushes: mpsc::Receiver<Vec<u8>>,
    link: watch::Receiver<Link>,
    /// Changes of the nodes of a cluster.
    slots: Option<watch::Receiver<Arc<Map>>>,
    known: Known,
    /// The leader that was reported last.
    told: Option<Leader>,
    /// Number of the client's connection on which it listens.
    number: u64,
    /// When to look again.
    due: Instant,
}

impl Observer {
    fn new(session: &Arc<Session>, key: Key) -> Self {
        let channel = format!("distlock:leader:{}:", session.database);
        let channel = [channel.as_bytes(), key.lock()].concat();
        let (heard, pushes) = mpsc::channel(UNREAD);
        let ear = Arc::new(Ear { pushes: heard, missed: AtomicBool::new(false) });
        session.observers.add(&channel, ear.clone());
        let (link, slots) = (session.routes.of(&key).link(), session.routes.changes());
        Self {
            session: Arc::downgrade(session),
            key,
            channel,
            ear,
            pushes,
            link,
            slots,
            known: Known::default(),
            told: None,
            number: 0,
            due: Instant::NEVER,
        }
    }

    /// Waits for the next state to report.
    async fn change(&mut self) -> Result<Option<Leader>> {
        loop {
            if self.pushes.is_empty() && self.ear.missed.swap(false, Ordering::AcqRel) {
                return self.look().await;
            }
            tokio::select! {
                biased;
                Some(payload) = self.pushes.recv() => match Told::parse(&payload) {
                    Some(told) => match self.known.told(&told) {
                        Next::Ignore => {}
                        Next::Look => return self.look().await,
                        Next::Tell => return Ok(self.take_in(told)),
                    },
                    None => return self.look().await,
                },
                () = moved(&mut self.link, self.number) => return self.look().await,
                () = moves(&mut self.slots) => return self.look().await,
                () = Clock::Boot.sleep_until(self.due) => return self.look().await,
            }
        }
    }

    fn take_in(&mut self, told: Told) -> Option<Leader> {
        match told {
            Told::Leads(leads) => {
                self.look_after(leads.ttl);
                Some(leads.leader)
            }
            Told::Gone(_) => {
                self.look_after(None);
                None
            }
        }
    }

    fn look_after(&mut self, ttl: Option<Duration>) {
        let expiry = ttl.map_or(LONGEST_LOOK, |ttl| ttl + jitter(EXPIRY_SLACK));
        self.due = Clock::Boot.now() + jitter(LONGEST_LOOK).min(expiry);
    }

    /// Subscribes and looks, again and again until the server answers.
    ///
    /// # Errors
    ///
    /// The server's error if a retry is useless; [`Error::Closed`] if the session has ended.
    async fn look(&mut self) -> Result<Option<Leader>> {
        loop {
            let session = self.session.upgrade().ok_or_else(error::closed)?;
            match self.look_once(&session).await {
                Ok(value) => {
                    let looked = Looked::read(&value);
                    let looked = looked.ok_or_else(|| error::unexpected("observe", &value))?;
                    self.known.looked(&looked);
                    self.look_after(looked.ttl);
                    return Ok(session.leader(looked).await);
                }
                Err(Failure::Closed) => return Err(error::closed()),
                Err(Failure::Refused(e)) if session.is_redirected(None, &e) => {
                    drop(session);
                    sleep(jitter(PAUSE)).await;
                }
                Err(Failure::Refused(e)) if !error::is_passing(&e) => {
                    return Err(error::convert("observe", e));
                }
                Err(Failure::Refused(_)) => {
                    drop(session);
                    sleep(jitter(PAUSE)).await;
                }
                Err(Failure::Lost(_) | Failure::Down(_) | Failure::Short(_)) => {
                    drop(session);
                    tokio::select! {
                        biased;
                        () = moves(&mut self.slots) => {}
                        restored = restored(&mut self.link) => restored?,
                    }
                }
            }
        }
    }

    async fn look_once(&mut self, session: &Session) -> Result<Value, Failure> {
        let _turn = Lane::Turn.turn(&session.turns, None).await;
        if let Some(slots) = &mut self.slots {
            slots.borrow_and_update();
        }
        let node = session.routes.of(&self.key);
        if self.slots.is_some() {
            self.link = node.link();
        }
        let connection = node.connection()?;
        let command = script::read(&self.key, "leader", &[]);
        let answer = connection.listen_and_call(&self.channel, &command, LIMIT).await;
        let value = node.judge(&connection, answer)?;
        self.number = connection.number;
        Ok(value)
    }
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        let now = self.change().await?;
        // A look mostly finds the known state.
        let news = (now != self.told).then(|| now.clone());
        self.told = now;
        Ok(news.into_iter().collect())
    }
}

impl Session {
    async fn leader(&self, looked: Looked) -> Option<Leader> {
        match &looked.state {
            State::Vacant => None,
            State::Leads(leads) => Some(leads.leader.clone()),
            State::Plain(client, own) => {
                let client = client.as_deref();
                let asked = client.filter(|client| own.is_none() && !client.is_empty());
                // A failure hides only the description; the leader counts more.
                let described = self.descriptions(asked.into_iter()).await;
                let who = own.clone().or_else(|| described.into_values().next());
                Some(looked.plain(client.is_some(), who))
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        if !session.observers.remove(&self.channel, &self.ear) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let channel = std::mem::take(&mut self.channel);
        let node = session.routes.of(&self.key);
        runtime.spawn(async move {
            // If it fails, the connection is gone, and the subscription with it.
            let _ = stop_listening(&node, &channel).await;
            // A new observer may have subscribed before this took effect. The empty push makes it
            // look, and subscribe, once more.
            session.observers.tell(&channel, b"");
        });
    }
}

async fn stop_listening(node: &Node, channel: &[u8]) -> Result<(), Failure> {
    let connection = node.connection()?;
    let answer = connection.listen(channel, false, LIMIT).await;
    node.judge(&connection, answer)
}

/// Waits for a connection other than this one, or for the session's end.
async fn moved(link: &mut watch::Receiver<Link>, number: u64) {
    let moved = |link: &Link| match link {
        Link::Up(connection) => connection.number != number,
        Link::Down(..) => false,
        Link::Closed => true,
    };
    // An error means that the session has ended.
    let _ = link.wait_for(moved).await;
}

/// Waits for a change of the nodes of a cluster.
async fn moves(slots: &mut Option<watch::Receiver<Arc<Map>>>) {
    if let Some(slots) = slots
        && slots.changed().await.is_ok()
    {
        return;
    }
    // There is no cluster, or the session has ended, which shows elsewhere.
    std::future::pending().await
}

/// Waits until there is a connection again.
///
/// # Errors
///
/// The server's error if it denies access to this client;
/// [`Error::Closed`](lock_core::Error::Closed) if the session has ended.
async fn restored(link: &mut watch::Receiver<Link>) -> Result<()> {
    let known = |link: &Link| match link {
        // A certificate may be renewed.
        Link::Down(why, _) => error::is_login_refused(why),
        Link::Up(_) | Link::Closed => true,
    };
    match link.wait_for(known).await.as_deref() {
        Ok(Link::Up(_)) => Ok(()),
        Ok(Link::Down(why, _)) => Err(error::convert("observe", redis::RedisError::clone(why))),
        Ok(Link::Closed) | Err(_) => Err(error::closed()),
    }
}
