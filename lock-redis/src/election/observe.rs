//! Observes an election: a push is a hint that something has changed, and a look at the server says
//! what. One look serves all hints that came before it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{
    Clock, Instant, Leader, Observed, Result,
    deadline::jitter,
    keep::{
        self,
        observe::{first, tell},
        wait::Waits,
    },
};
use redis::Value;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{sleep, timeout},
};

use crate::{
    election::observers::channel,
    error,
    layout::key::Key,
    session::{Session, node::Link, slots::Map},
    wire::{failure::Failure, script, snapshot::Snapshot},
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
pub(crate) async fn observe(session: &Arc<Session>, key: Key) -> Result<mpsc::Receiver<Observed>> {
    let mut observer = Observer::new(session, key);
    let now = Box::pin(first(session.store(), LIMIT * 2, observer.look())).await?;
    // One that does not read gets the newest state when it reads again.
    let (out, observed) = mpsc::channel(1);
    observer.told = now.clone();
    let end = session.observers.end();
    tokio::spawn(async move {
        tokio::select! {
            () = tell(observer, vec![now], out) => {}
            // Ends also while earlier news is unread.
            () = end => {}
        }
    });
    Ok(observed)
}

struct Observer {
    session: Weak<Session>,
    key: Key,
    channel: Vec<u8>,
    hint: Arc<Notify>,
    /// Changes of the nodes of a cluster.
    slots: Option<watch::Receiver<Arc<Map>>>,
    /// The leader that was reported last.
    told: Option<Leader>,
    /// When to look again.
    due: Instant,
}

impl Observer {
    fn new(session: &Arc<Session>, key: Key) -> Self {
        let channel = channel(session.config.database, key.lock());
        let hint = Arc::new(Notify::new());
        session.observers.add(&channel, hint.clone());
        let (session, slots) = (Arc::downgrade(session), session.routes.changes());
        Self { session, key, channel, hint, slots, told: None, due: Instant::NEVER }
    }

    fn look_after(&mut self, ttl: Option<Duration>) {
        let expiry = ttl.map_or(LONGEST_LOOK, |ttl| ttl + jitter(EXPIRY_SLACK));
        self.due = Clock::Boot.now() + jitter(LONGEST_LOOK).min(expiry);
    }

    /// Subscribes and looks, again and again until the server answers.
    async fn look(&mut self) -> Result<Option<Leader>> {
        loop {
            let session = self.session.upgrade().ok_or_else(error::closed)?;
            match self.look_once(&session).await {
                Ok(value) => {
                    let mut snapshot = Snapshot::read(&value)
                        .ok_or_else(|| error::unexpected("observe", &value))?;
                    self.look_after(snapshot.ttl_left);
                    // A failure hides only the description; the leader counts more.
                    session.describe_clients(&mut snapshot).await;
                    return Ok(snapshot.leader());
                }
                Err(Failure::Closed) => return Err(error::closed()),
                // A certificate may be renewed.
                Err(Failure::Down(e)) if error::is_login_refused(&e) => {
                    return Err(error::convert("observe", e));
                }
                Err(Failure::Refused(e))
                    if !session.is_redirected(&e) && !error::is_passing(&e) =>
                {
                    return Err(error::convert("observe", e));
                }
                Err(Failure::Refused(_)) => {
                    drop(session);
                    sleep(jitter(PAUSE)).await;
                }
                Err(Failure::Lost(_) | Failure::Down(_) | Failure::Short(_)) => {
                    let mut link = session.routes.of(self.key.lock()).link();
                    drop(session);
                    // Also a login that is refused by now, which the next look reports.
                    let known = |link: &Link| match link {
                        Link::Down(why, _) => error::is_login_refused(why),
                        Link::Up(_) | Link::Closed => true,
                    };
                    let known = async { drop(timeout(LIMIT, link.wait_for(known)).await) };
                    tokio::select! {
                        biased;
                        () = moves(&mut self.slots) => {}
                        () = known => {}
                    }
                }
            }
        }
    }

    async fn look_once(&mut self, session: &Session) -> Result<Value, Failure> {
        let _turn = session.turns.acquire().await;
        if let Some(slots) = &mut self.slots {
            slots.borrow_and_update();
        }
        let node = session.routes.of(self.key.lock());
        let connection = node.connection()?;
        let request = script::read(&self.key, "leader", &[]);
        let answer = connection.listen_and_call(&self.channel, &request.call, LIMIT).await;
        node.judge(&connection, answer)
    }
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        tokio::select! {
            () = self.hint.notified() => {}
            () = moves(&mut self.slots) => {}
            () = Clock::Boot.sleep_until(self.due) => {}
        }
        let now = self.look().await?;
        // A look mostly finds the known state.
        let news = (now != self.told).then(|| now.clone());
        self.told = now;
        Ok(news.into_iter().collect())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        if !session.observers.remove(&self.channel, &self.hint) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let channel = std::mem::take(&mut self.channel);
        let node = session.routes.of(self.key.lock());
        runtime.spawn(async move {
            // Without a connection, or if it breaks, the subscription is gone.
            if let Ok(connection) = node.connection() {
                let answer = connection.listen(&channel, false, LIMIT).await;
                drop(node.judge(&connection, answer));
            }
            // A new observer may have subscribed before this took effect. It looks, and subscribes,
            // once more.
            session.observers.hint(&channel);
        });
    }
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
