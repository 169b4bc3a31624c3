//! A client's session: its requests, the store's pushes, and the attempts that hold or wait.

pub(crate) mod attempt;
pub(crate) mod renewal;

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use lock_core::{
    Clock, Effect, Error, Reach, Result,
    duration::shown,
    keep::{attempts::Attempts, errors::unavailable, poison::lock},
};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use self::attempt::Attempt;
use crate::{
    MemoryStore,
    store::{Client, state::Push},
    wire::network::{BACK, THERE, Trouble, UnderWay},
};

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) reach: Reach,
    attempts: Mutex<Attempts<Attempt>>,
    /// Tasks that deliver changes of the leader.
    pub(crate) observers: Mutex<JoinSet<()>>,
    /// Notified when a renewal is due earlier than before, or the session ends.
    changed: Arc<Notify>,
}

impl Session {
    /// Connects. Pushes are delivered from now on; nothing is renewed yet.
    pub(crate) fn start(store: MemoryStore) -> Arc<Self> {
        let (tell, told) = mpsc::unbounded_channel();
        let session = Arc::new(Self {
            client: store.enter(tell),
            reach: Reach::default(),
            attempts: Mutex::default(),
            observers: Mutex::default(),
            changed: Arc::default(),
        });
        let pushes = UnderWay::new(session.client.network.clone(), told, false);
        tokio::spawn(deliver(Arc::downgrade(&session), pushes));
        session
    }

    /// Makes one request over the client's network, and returns its reply.
    pub(crate) async fn request<T>(
        &self,
        op: &'static str,
        patience: Duration,
        mut act: impl FnMut(&MemoryStore) -> T,
    ) -> Result<T> {
        let network = &self.client.network;
        let answer = tokio::time::timeout(patience, async {
            let mut before = Effect::None;
            loop {
                network.arrives(THERE, Clock::Tokio.now()).await;
                let lost = network.loses_one(THERE);
                let reply = (!lost).then(|| match network.now().refusal {
                    Some(refusal) => Err(refusal.error(op, before)),
                    None => {
                        before = Effect::Unknown;
                        Ok(act(&self.client.store))
                    }
                });
                let answered = Clock::Tokio.now();
                // Other tasks run meanwhile, as over a network.
                tokio::task::yield_now().await;
                network.arrives(BACK, answered).await;
                // A lost request is sent again; the store knows the attempt by its id.
                if let Some(reply) = reply
                    && !network.loses_one(BACK)
                {
                    return reply;
                }
            }
        });
        let answer = answer.await.map_err(|_| format!("no answer within {}", shown(patience)));
        match &answer {
            Ok(_) => self.reach.works(),
            Err(why) => self.reach.broke(why),
        }
        answer.map_err(|why| unavailable("memory", op, Effect::Unknown, why))?
    }

    /// Registers the attempt for pushes and, once it waits or holds, for renewal.
    pub(crate) fn enter(&self, attempt: &Arc<Attempt>) -> Result<()> {
        let earlier = lock(&self.attempts).enter(attempt, Clock::Tokio.now());
        if earlier.ok_or_else(|| Error::closed("memory"))? {
            self.changed.notify_one();
        }
        Ok(())
    }

    pub(crate) fn forget(&self, attempt: &Attempt) {
        lock(&self.attempts).forget(attempt);
    }

    /// Takes note that the attempt's entry is gone from the store.
    fn gone(&self, attempt: &Attempt) {
        self.forget(attempt);
        attempt.gone(Clock::Tokio.now());
    }

    /// Ends all attempts and observers of this client. Returns the attempts that the store has to
    /// forget. Do that after this, because it lets others in.
    pub(crate) fn end(&self) -> Vec<Arc<Attempt>> {
        let left = {
            let mut attempts = lock(&self.attempts);
            self.client.close();
            attempts.close()
        };
        lock(&self.observers).abort_all();
        for attempt in &left {
            self.forget(attempt);
            attempt.closed();
        }
        self.changed.notify_one();
        left
    }

    fn pushed(&self, push: Push) {
        let (Push::Granted(id, _) | Push::Gone(id)) = push;
        let Some(attempt) = lock(&self.attempts).find(id).cloned() else { return };
        match push {
            Push::Granted(_, grant) => attempt.pushed(grant),
            Push::Gone(_) => self.gone(&attempt),
        }
    }
}

/// Delivers the store's pushes over the client's network.
async fn deliver(session: Weak<Session>, mut pushes: UnderWay<Push>) {
    while let Some(step) = pushes.step().await {
        let Some(push) = step else { continue };
        let Some(session) = session.upgrade() else { return };
        session.pushed(push);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let left = self.end();
        // No caller waits for an answer, so the network's delay does not matter.
        if self.client.network.now().crashed.is_none() {
            left.iter().for_each(|attempt| self.client.store.leave(&attempt.name, attempt.id));
        }
        // The delivering task may wait for the end of a cut. It has nothing left to deliver.
        self.client.network.change(|trouble| *trouble = Trouble::default());
    }
}
