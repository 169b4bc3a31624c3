//! A client's session: its requests, what the store pushes to it, and what it holds or waits for.

pub(crate) mod renewal;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use lock_core::{
    Clock, Effect, Error, Instant, LockName, LossReason, Reach, Result, Term, Validity, deadline,
    duration::shown,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::AbortHandle,
};
use uuid::Uuid;

use crate::{
    MemoryStore,
    defect::Defect,
    store::{
        Client,
        state::{Grant, Told},
    },
    wire::network::{Network, Trouble, UnderWay},
};

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) reach: Reach,
    records: Mutex<HashMap<Uuid, Record>>,
    observers: Mutex<Vec<AbortHandle>>,
    /// A record came or the session closed.
    changed: Arc<Notify>,
}

/// An attempt of this client that has an entry in the store, as far as the client knows.
#[derive(Debug)]
struct Record {
    name: LockName,
    ttl: Duration,
    /// Whether the store is known to have the entry.
    known: bool,
    renewals: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Waiting(oneshot::Sender<Option<Grant>>),
    Holding { validity: Validity, term: Term },
}

impl Session {
    /// Connects. What the store pushes is delivered from now on; nothing is renewed yet.
    pub(crate) fn start(store: MemoryStore) -> Arc<Self> {
        let (tell, told) = mpsc::unbounded_channel();
        let session = Arc::new(Self {
            client: store.enter(tell),
            reach: Reach::default(),
            records: Mutex::default(),
            observers: Mutex::default(),
            changed: Arc::default(),
        });
        tokio::spawn(deliver(Arc::downgrade(&session), session.client.network.clone(), told));
        session
    }

    /// One request and its reply over the client's network.
    pub(crate) async fn request<T>(
        &self,
        op: &'static str,
        patience: Duration,
        mut act: impl FnMut(&MemoryStore) -> T,
    ) -> Result<T> {
        let answer = tokio::time::timeout(patience, async {
            loop {
                self.client.network.request_arrives().await;
                let lost = self.client.network.loses_request();
                let reply = (!lost).then(|| act(&self.client.store));
                let answered = Clock::Tokio.now();
                // As over a network, others get on meanwhile.
                tokio::task::yield_now().await;
                self.client.network.reply_arrives(answered).await;
                // What is lost is sent again; the store knows the attempt by its id.
                if let Some(reply) = reply
                    && !self.client.network.loses_reply()
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
        let effect = Effect::Unknown;
        answer.map_err(|why| Error::Unavailable { store: "memory", op, effect, source: why.into() })
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        self.client.check_open()
    }

    pub(crate) fn wait(
        &self,
        attempt: Uuid,
        name: &LockName,
        ttl: Duration,
    ) -> Result<oneshot::Receiver<Option<Grant>>> {
        let (granted, wait) = oneshot::channel();
        self.record(attempt, name, ttl, Stage::Waiting(granted))?;
        Ok(wait)
    }

    /// The store has answered that the attempt waits: from now on it is kept alive. Before, a
    /// renewal could come to the store ahead of the entry, and be told that there is none.
    pub(crate) fn known(&self, attempt: Uuid) {
        if let Some(record) = self.records().get_mut(&attempt) {
            record.known = true;
        }
    }

    pub(crate) fn hold(
        &self,
        attempt: Uuid,
        name: &LockName,
        ttl: Duration,
        validity: &Validity,
        term: Term,
    ) -> Result<()> {
        self.record(attempt, name, ttl, Stage::Holding { validity: validity.clone(), term })
    }

    fn record(&self, attempt: Uuid, name: &LockName, ttl: Duration, stage: Stage) -> Result<()> {
        let known = matches!(stage, Stage::Holding { .. });
        let record = Record { name: name.clone(), ttl, known, renewals: 0, stage };
        let mut records = self.records();
        // Under the lock: what comes after the end of the session is not in it.
        self.check_open()?;
        if records.insert(attempt, record).is_none() {
            self.changed.notify_one();
        }
        Ok(())
    }

    pub(crate) fn forget(&self, attempt: Uuid) {
        self.records().remove(&attempt);
    }

    /// The end of a grant or renewal whose request was sent at `sent`.
    pub(crate) fn until(&self, sent: Instant, ttl: Duration, term: Term) -> Instant {
        match self.client.store.has(Defect::TellsTooLate) && term == Term::Renewed {
            true => deadline::safe_until(sent, ttl * 2),
            false => deadline::safe_until(sent, ttl),
        }
    }

    /// Ends all that there is for this client. The answer is what the store has yet to forget: after
    /// all have been told, as that lets others in.
    pub(crate) fn end(&self) -> Vec<(Uuid, LockName)> {
        let records: Vec<_> = {
            let mut records = self.records();
            self.client.close();
            records.drain().collect()
        };
        self.observers().drain(..).for_each(|task| task.abort());
        let mut left = Vec::with_capacity(records.len());
        for (attempt, record) in records {
            left.push((attempt, record.name.clone()));
            record.end(LossReason::Closed);
        }
        self.changed.notify_one();
        left
    }

    fn told(&self, told: Told) {
        match told {
            Told::Granted(attempt, grant) => {
                let mut records = self.records();
                if matches!(records.get(&attempt), Some(Record { stage: Stage::Waiting(_), .. }))
                    && let Some(Record { stage: Stage::Waiting(waiter), .. }) =
                        records.remove(&attempt)
                {
                    // A waiter that has left cleans up by its id.
                    let _ = waiter.send(Some(grant));
                }
            }
            Told::Gone(attempt) => {
                if let Some(record) = self.records().remove(&attempt) {
                    record.end(LossReason::EntryGone);
                }
            }
        }
    }

    pub(crate) fn observers(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        // Nothing panics while it is held.
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> MutexGuard<'_, HashMap<Uuid, Record>> {
        // Nothing panics while it is held.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn end(self, reason: LossReason) {
        match self.stage {
            Stage::Waiting(waiter) => drop(waiter.send(None)),
            Stage::Holding { validity, .. } => drop(validity.lose(reason)),
        }
    }
}

/// Delivers what the store pushes over the client's network.
async fn deliver(
    session: Weak<Session>,
    network: Network,
    mut told: mpsc::UnboundedReceiver<Told>,
) {
    let mut under_way = UnderWay::new(network);
    loop {
        let push = tokio::select! {
            push = told.recv() => match push {
                Some(push) => {
                    under_way.send(push);
                    continue;
                }
                None => return,
            },
            push = under_way.arrival() => push,
        };
        let Some(session) = session.upgrade() else { return };
        session.told(push);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let left = self.end();
        // Nobody waits for an answer, so no way is too long.
        if self.client.network.now().crashed.is_none() {
            left.iter().for_each(|(attempt, name)| self.client.store.leave(name, *attempt));
        }
        // The delivering task may wait for the end of a cut; there is nothing left to deliver.
        self.client.network.change(|trouble| *trouble = Trouble::default());
    }
}
