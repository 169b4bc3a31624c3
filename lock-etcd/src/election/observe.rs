//! Who leads, told to one observer.
//!
//! The queue is read once, and a watch tells what happens after that. etcd keeps its history, so an
//! observer that does not look costs nothing but a watch that is opened again later, and so does a
//! stream that breaks. What etcd cannot tell any more is read.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use etcd_client::{GetOptions, GetResponse};
use lock_core::{
    Clock, FencingToken, Holder, Leader, LockName, Observed, Result, deadline::jitter,
    keep::limits::UNREAD,
};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::{
    election::{
        leader::{First, Seen, View},
        observers::{self, News, Observers},
    },
    error::Failure,
    layout::{
        keys::{Role, role},
        note,
    },
    session::store::Store,
    wire::{
        connection::{Connection, LONGEST_PAUSE, Word},
        reads,
    },
};

/// How often to see whether the watch still tells everything: watches have lost events before
/// (etcd#18089).
const LOOK: Duration = Duration::from_secs(10);

/// How long the watch may take to tell what a look has found.
const LATE: Duration = Duration::from_secs(1);

/// One observer.
struct Observer {
    connection: Arc<Connection>,
    observers: Arc<Observers>,
    queue: Arc<str>,
    view: View,
    /// What the tokens of the last leader counted from.
    floor: u64,
    /// The last candidate whose note was asked for.
    known: (i64, Holder),
    /// What the observer has not taken yet.
    pending: VecDeque<Option<Leader>>,
    out: mpsc::Sender<Observed>,
}

/// What comes after a watch.
enum Then {
    /// Another one, when the observer has taken what there is.
    Watch,
    Read,
    /// As [`Read`](Self::Read); if that is allowed, the login of this generation has expired.
    LogIn(u64),
}

/// Observes a name until the receiver is dropped or the client is closed.
///
/// # Errors
///
/// What the first read comes to.
pub(crate) async fn observe(
    store: &Arc<Store>,
    name: &LockName,
) -> Result<mpsc::Receiver<Observed>> {
    let queue = store.layout.queue(name)?;
    let (out, observed) = mpsc::channel(UNREAD);
    let mut observer = Observer {
        connection: store.connection.clone(),
        observers: store.observers.clone(),
        queue,
        view: View::default(),
        floor: store.floor.known().above(),
        known: (0, Holder::default()),
        pending: VecDeque::new(),
        out: out.clone(),
    };
    observer.read().await.map_err(|failure| failure.into_error("observe", false))?;
    let closed = store.closed.clone();
    store.runtime.spawn(async move {
        tokio::select! {
            () = closed.cancelled() => {}
            () = out.closed() => {}
            () = observer.run() => {}
        }
    });
    Ok(observed)
}

impl Observer {
    /// Tells every change until there is no use in it.
    async fn run(&mut self) {
        loop {
            self.deliver().await;
            // A failure is that of a request, and dealt with as such.
            let refused = match self.follow().await {
                Ok(Then::Watch) => continue,
                Ok(Then::LogIn(generation)) => Some(generation),
                Ok(Then::Read) | Err(_) => None,
            };
            loop {
                tokio::time::sleep(jitter(LONGEST_PAUSE)).await;
                match self.read_after(refused).await {
                    Ok(()) => break,
                    Err(failure) if failure.kind.is_passing() => {}
                    Err(failure) => {
                        // Whoever has left needs no answer.
                        let _ = self.out.send(Err(failure.into_error("observe", false))).await;
                        return;
                    }
                }
            }
        }
    }

    /// Begins anew with the queue of this moment.
    async fn read(&mut self) -> Result<(), Failure> {
        self.view = view(&reads::read(&self.connection, &self.queue).await?)?;
        self.tell(vec![self.view.first()]).await
    }

    /// Begins anew, with a new login if the watch was refused and the read is not.
    async fn read_after(&mut self, refused: Option<u64>) -> Result<(), Failure> {
        self.read().await?;
        match refused {
            Some(generation) => self.connection.log_in_to_watch(generation).await,
            None => Ok(()),
        }
    }

    /// Watches from where the view stands.
    async fn follow(&mut self) -> Result<Then, Failure> {
        let mut watching = observers::watch(&self.observers, &self.queue, self.view.revision + 1);
        let (mut look_at, mut doubted) = (Clock::Boot.now() + LOOK, None);
        loop {
            tokio::select! {
                news = watching.next() => match news {
                    None => return Ok(Then::Watch),
                    Some(News::Gone) => return Ok(Then::Read),
                    Some(News::Refused(on)) => return Ok(Then::LogIn(on)),
                    Some(News::Changes(changes)) => {
                        let news = self.view.apply(changes);
                        self.tell(news).await?;
                        if !self.deliver_now() {
                            return Ok(Then::Watch);
                        }
                    }
                },
                () = Clock::Boot.sleep_until(look_at) => {
                    let known = Some(self.view.first());
                    let differs = self.differs().await?;
                    // The watch has had its time, and told nothing.
                    if differs && doubted == known {
                        return Ok(Then::Read);
                    }
                    doubted = known.filter(|_| differs);
                    look_at = Clock::Boot.now() + if differs { LATE } else { LOOK };
                }
            }
        }
    }

    /// Whether the member at hand knows another leader, by a look at one key.
    async fn differs(&self) -> Result<bool, Failure> {
        let first = self.view.first();
        let options = GetOptions::new().with_keys_only().with_serializable();
        let (key, options) = match &first {
            Some(first) => (first.key.clone(), options),
            None => (self.queue.as_bytes().to_vec(), options.with_prefix().with_limit(1)),
        };
        let answer = self
            .connection
            .look(Word::Member, |member| {
                let mut kv = member.kv.clone();
                async move { kv.get(key, Some(options)).await }
            })
            .await?;
        let found = answer.kvs().first();
        Ok(match first {
            // It leads if nothing was heard of it since.
            Some(first) => {
                let modified = self.view.modified(&first.key);
                found.is_none_or(|kv| kv.mod_revision() > modified)
            }
            // What is there leads, unless it stands beside others.
            None => self.view.is_empty() && found.is_some_and(|kv| role(kv.key()).kind().is_some()),
        })
    }

    /// Notes what is to be told.
    async fn tell(&mut self, news: Vec<Option<First>>) -> Result<(), Failure> {
        let last = news.len().saturating_sub(1);
        for (n, first) in news.into_iter().enumerate() {
            let leader = match first {
                Some(first) => Some(self.introduce(first, n == last).await?),
                None => None,
            };
            self.pending.push_back(leader);
        }
        Ok(())
    }

    /// The leader with what is known of it. Only who leads `now` is asked for: the note of another
    /// is gone.
    async fn introduce(&mut self, first: First, now: bool) -> Result<Leader, Failure> {
        let First { key, revision, role, value } = first;
        let (value, holder) = match role {
            Role::Candidate => {
                if now && self.known.0 != revision {
                    let key = String::from_utf8_lossy(&key);
                    let note = reads::note(&self.connection, &key, revision).await?;
                    self.known = (revision, note::holder(&note, revision, false));
                }
                let known = Some(&self.known).filter(|known| known.0 == revision);
                (
                    value,
                    known.map_or_else(
                        || note::holder(b"", revision, false),
                        |known| known.1.clone(),
                    ),
                )
            }
            Role::Foreign => (value, Holder::default()),
            // Whether it was passed on is not known here.
            _ => (Vec::new(), note::holder(&value, revision, true)),
        };
        if let (Some(_), Some(token)) = (&holder.description, holder.token) {
            self.floor = token.value().saturating_sub(revision.unsigned_abs());
        }
        // Where its note is gone, or was never there, it counts as the one before.
        let token = FencingToken::new(self.floor.saturating_add(revision.unsigned_abs()));
        Ok(Leader::new(token, value, holder))
    }

    /// Tells what is noted, however long it takes the observer.
    async fn deliver(&mut self) {
        while let Some(now) = self.pending.pop_front() {
            // Whoever has left needs no answer.
            let _ = self.out.send(Ok(now)).await;
        }
    }

    /// Tells what is noted if the observer has room for it; answers whether it had.
    fn deliver_now(&mut self) -> bool {
        while let Some(now) = self.pending.pop_front() {
            if let Err(TrySendError::Full(Ok(now))) = self.out.try_send(Ok(now)) {
                self.pending.push_front(now);
                return false;
            }
        }
        true
    }
}

fn view(answer: &GetResponse) -> Result<View, Failure> {
    let header = answer.header().ok_or(Failure::senseless("no header"))?;
    Ok(View::new(header.revision(), answer.kvs().iter().map(Seen::of)))
}
