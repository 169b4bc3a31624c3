//! Who leads, told to one observer.
//!
//! The queue is read once, and a watch tells what happens after that. etcd keeps its history, so an
//! observer that does not look costs nothing but a watch that is opened again later. Whatever else
//! ends the watch is followed by another read.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use etcd_client::{EventType, GetResponse, WatchOptions, WatchResponse, WatchStream};
use lock_core::{Clock, FencingToken, Holder, Leader, LockName, Observed, Result};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::timeout,
};

use crate::{
    connection::{ANSWER_LIMIT, Connection, Pause},
    entry,
    error::{Failure, Kind},
    layout::Role,
    requests,
    store::Store,
    view::{Change, First, Seen, View},
};

/// How many changes may wait for an observer that does not look.
const UNREAD: usize = 64;

/// How often to see whether the watch still tells everything: watches have lost events before
/// (etcd#18089), and a connection may break without a sound.
const LOOK: Duration = Duration::from_secs(5);

/// How long the watch may take to tell what a look has found.
const LATE: Duration = Duration::from_secs(1);

/// One observer.
struct Observer {
    connection: Arc<Connection>,
    queue: Arc<str>,
    view: View,
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
        queue,
        view: View::default(),
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
            let generation = self.connection.member().generation;
            match self.follow().await {
                Ok(Then::Watch) => continue,
                Ok(Then::Read) => {}
                Err(failure) => drop(self.connection.failed(generation, &failure).await),
            }
            loop {
                Pause::longest().wait().await;
                match self.read().await {
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
        self.view = view(&requests::read(&self.connection, &self.queue).await?)?;
        self.tell(vec![self.view.first()]).await
    }

    /// Watches from where the view stands.
    async fn follow(&mut self) -> Result<Then, Failure> {
        let mut changes = self.connection.changes();
        changes.mark_unchanged();
        let mut stream = self.open().await?;
        let (mut look_at, mut doubted) = (Clock::Boot.now() + LOOK, None);
        loop {
            tokio::select! {
                message = stream.message() => {
                    let message = message?.ok_or(Failure::new(Kind::Broken, "the watch ended"))?;
                    if message.canceled() {
                        return cancelled(&message);
                    }
                    let news = self.view.apply(changed(&message));
                    self.tell(news).await?;
                    if !self.deliver_now() {
                        return Ok(Then::Watch);
                    }
                }
                // On another member from now on.
                _ = changes.changed() => return Ok(Then::Read),
                () = Clock::Boot.sleep_until(look_at) => {
                    let now = view(&requests::read(&self.connection, &self.queue).await?)?;
                    let known = Some(self.view.first());
                    let differs = known != Some(now.first());
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

    async fn open(&self) -> Result<WatchStream, Failure> {
        let mut client = self.connection.member().watch.clone();
        let options = WatchOptions::new().with_prefix().with_start_revision(self.view.revision + 1);
        match timeout(ANSWER_LIMIT, client.watch(&*self.queue, Some(options))).await {
            Ok(opened) => Ok(opened?),
            Err(_) => Err(Failure::silent(ANSWER_LIMIT)),
        }
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

    /// The leader with what is known of it. Only who leads `now` is asked for: the note of another is
    /// gone.
    async fn introduce(&mut self, first: First, now: bool) -> Result<Leader, Failure> {
        let First { key, revision, role, value } = first;
        let (value, holder) = match role {
            Role::Candidate => {
                if now && self.known.0 != revision {
                    let key = String::from_utf8_lossy(&key);
                    let note = requests::note(&self.connection, &key, revision).await?;
                    self.known = (revision, entry::holder(&note, revision));
                }
                let known = Some(&self.known).filter(|known| known.0 == revision);
                (value, known.map_or_else(|| entry::holder(b"", revision), |known| known.1.clone()))
            }
            Role::Foreign => (value, Holder::default()),
            _ => (Vec::new(), entry::holder(&value, revision)),
        };
        Ok(Leader::new(FencingToken::new(revision.unsigned_abs()), value, holder))
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

fn cancelled(message: &WatchResponse) -> Result<Then, Failure> {
    // It began, or fell behind, at a revision that is compacted.
    if message.compact_revision() != 0 {
        return Ok(Then::Read);
    }
    let reason = format!("the watch was cancelled: {}", message.cancel_reason());
    Err(Failure::new(Kind::Broken, reason))
}

fn view(answer: &GetResponse) -> Result<View, Failure> {
    let header = answer.header().ok_or(Failure::senseless("no header"))?;
    Ok(View::new(header.revision(), answer.kvs().iter().map(seen)))
}

fn changed(message: &WatchResponse) -> Vec<Change> {
    let change = |event: &etcd_client::Event| {
        let kv = event.kv()?;
        Some(match event.event_type() {
            EventType::Put => Change::Put(seen(kv)),
            EventType::Delete => Change::Deleted { key: kv.key().to_vec(), at: kv.mod_revision() },
        })
    };
    message.events().iter().filter_map(change).collect()
}

fn seen(kv: &etcd_client::KeyValue) -> Seen {
    Seen {
        key: kv.key().to_vec(),
        created: kv.create_revision(),
        modified: kv.mod_revision(),
        value: kv.value().to_vec(),
    }
}
