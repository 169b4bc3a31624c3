//! Reports the leader to one observer.
//!
//! The queue is read once, and a watch reports changes after that. etcd keeps its history, so an
//! observer that does not look, or a stream that breaks, only costs a watch that is opened again
//! later. Changes that etcd cannot report any more are replaced by a read.

use std::{sync::Arc, time::Duration};

use etcd_client::GetOptions;
use lock_core::{
    Clock, FencingToken, Holder, Instant, Leader, LockName, Observed, Result,
    deadline::jitter,
    keep::{self, limits::UNREAD},
};
use tokio::sync::mpsc;

use crate::{
    election::{
        leader::{First, View},
        observers::{self, News, Watching},
    },
    error::Failure,
    layout::{
        keys::{Role, role},
        note,
    },
    session::store::Store,
    wire::{
        answer::revision,
        connection::{LONGEST_PAUSE, Word},
        reads,
    },
};

/// How often to check that the watch has reported everything: watches have lost events before
/// (etcd#18089).
const LOOK: Duration = Duration::from_secs(10);

/// How long the watch may take to report a change that a check has found.
const LATE: Duration = Duration::from_secs(1);

/// One observer.
struct Observer {
    store: Arc<Store>,
    queue: Arc<str>,
    view: View,
    /// The token floor of the last leader.
    floor: u64,
    /// The last candidate whose note was read.
    known: (i64, Holder),
    /// News that are not reported yet.
    news: Vec<Option<Leader>>,
    /// `None` before the watch from the view's revision is opened.
    following: Option<Following>,
    /// Shows how many more changes the observer has room for.
    out: mpsc::Sender<Observed>,
}

/// The watch of an observer, and the check of it.
struct Following {
    watching: Watching,
    look_at: Instant,
    /// The leader that a check doubted, if the last one did.
    doubted: Option<Option<First>>,
}

/// The next step after news or the end of a watch.
enum Then {
    Watch,
    Read,
    /// Same as [`Read`](Self::Read). If the read is allowed, the login of this generation has
    /// expired.
    LogIn(u64),
}

/// Observes a name until the receiver is dropped or the client is closed.
///
/// # Errors
///
/// The error of the first read.
pub(crate) async fn observe(
    store: &Arc<Store>,
    name: &LockName,
) -> Result<mpsc::Receiver<Observed>> {
    let (out, observed) = mpsc::channel(UNREAD);
    let mut observer = Observer {
        store: store.clone(),
        queue: store.layout.queue(name)?,
        view: View::default(),
        floor: 0,
        known: (0, Holder::default()),
        news: Vec::new(),
        following: None,
        out: out.clone(),
    };
    observer.read().await.map_err(|failure| failure.into_error("observe", false))?;
    let first = std::mem::take(&mut observer.news);
    let tell = keep::observe::tell(observer, first, out);
    store.runtime.spawn(store.closed.clone().run_until_cancelled_owned(tell));
    Ok(observed)
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        while self.news.is_empty() {
            // A failure is that of a request, and was handled there.
            let refused = match self.follow().await {
                Ok(Then::Watch) => continue,
                Ok(Then::LogIn(generation)) => Some(generation),
                Ok(Then::Read) | Err(_) => None,
            };
            loop {
                Clock::Boot.sleep(jitter(LONGEST_PAUSE)).await;
                match self.read_after(refused).await {
                    Ok(()) => break,
                    Err(failure) if failure.kind.is_passing() => {}
                    Err(failure) => return Err(failure.into_error("observe", false)),
                }
            }
        }
        Ok(std::mem::take(&mut self.news))
    }
}

impl Observer {
    /// Begins anew with the current queue.
    async fn read(&mut self) -> Result<(), Failure> {
        let answer = reads::read(&self.store.connection, &self.queue).await?;
        self.view = View::new(revision(answer.header())?, answer.0.kvs);
        self.tell(vec![self.view.first()]).await
    }

    /// Begins anew, with a new login if the watch was refused but the read was not.
    async fn read_after(&mut self, refused: Option<u64>) -> Result<(), Failure> {
        self.read().await?;
        match refused {
            Some(generation) => self.store.connection.log_in_to_watch(generation).await,
            None => Ok(()),
        }
    }

    /// Watches from the view's revision until there are changes or the watch is of no more use.
    async fn follow(&mut self) -> Result<Then, Failure> {
        let Following { mut watching, mut look_at, mut doubted } = match self.following.take() {
            Some(following) => following,
            None => {
                let next = self.view.revision + 1;
                let watching = observers::watch(&self.store.observers, &self.queue, next);
                Following { watching, look_at: Clock::Boot.now() + LOOK, doubted: None }
            }
        };
        loop {
            tokio::select! {
                news = watching.news.recv() => return match news {
                    None => Ok(Then::Watch),
                    Some(News::Gone) => Ok(Then::Read),
                    Some(News::Refused(on)) => Ok(Then::LogIn(on)),
                    Some(News::Changes(changes)) => {
                        let changes = self.view.apply(changes);
                        self.tell(changes).await?;
                        // Otherwise another watch begins when the observer has taken all news.
                        if self.news.len() <= self.out.capacity() {
                            self.following = Some(Following { watching, look_at, doubted });
                        }
                        Ok(Then::Watch)
                    }
                },
                () = Clock::Boot.sleep_until(look_at) => {
                    let known = Some(self.view.first());
                    let differs = self.differs().await?;
                    // The watch had time, and reported nothing.
                    if differs && doubted == known {
                        return Ok(Then::Read);
                    }
                    doubted = known.filter(|_| differs);
                    look_at = Clock::Boot.now() + if differs { LATE } else { LOOK };
                }
            }
        }
    }

    /// Whether the member in use knows another leader. Reads one key.
    async fn differs(&self) -> Result<bool, Failure> {
        let first = self.view.first();
        let options = GetOptions::new().with_keys_only().with_serializable();
        let (key, options) = match &first {
            Some(first) => (first.key.clone(), options),
            None => (self.queue.as_bytes().to_vec(), options.with_prefix().with_limit(1)),
        };
        let answer = reads::get(&self.store.connection, Word::Member, &key, &options).await?;
        let found = answer.kvs().first();
        Ok(match first {
            // Differs if its key is gone, or was written since, or is older: the store went back.
            Some(first) => {
                let modified = self.view.modified(&first.key);
                found.is_none_or(|kv| kv.mod_revision() != modified)
            }
            // Differs if the empty queue has an entry now.
            None => self.view.is_empty() && found.is_some_and(|kv| role(kv.key()).kind().is_some()),
        })
    }

    /// Adds these changes to the news.
    async fn tell(&mut self, changes: Vec<Option<First>>) -> Result<(), Failure> {
        let last = changes.len().saturating_sub(1);
        for (n, first) in changes.into_iter().enumerate() {
            let leader = match first {
                Some(first) => Some(self.introduce(first, n == last).await?),
                None => None,
            };
            self.news.push(leader);
        }
        Ok(())
    }

    /// Returns the leader with its known facts. `now`: it still leads.
    async fn introduce(&mut self, first: First, now: bool) -> Result<Leader, Failure> {
        let First { key, revision, value } = first;
        let (value, holder) = match role(&key) {
            Role::Candidate => (value, self.candidate(&key, revision, now).await?),
            Role::Foreign => (value, Holder::default()),
            // It is not known here whether it was passed on.
            _ => (Vec::new(), note::holder(&value, revision, true)),
        };
        if let (Some(_), Some(token)) = (&holder.description, holder.token) {
            self.floor = token.value().saturating_sub(revision.unsigned_abs());
        }
        // Without a note the token counts from the same floor as the leader before.
        let token = FencingToken::new(self.floor.saturating_add(revision.unsigned_abs()));
        Ok(Leader::new(token, value, holder))
    }

    /// Returns the holder in a candidate's note. Reads the note only if the candidate leads `now`:
    /// the note of an earlier leader is gone.
    async fn candidate(&mut self, key: &[u8], revision: i64, now: bool) -> Result<Holder, Failure> {
        if now && self.known.0 != revision {
            let key = String::from_utf8_lossy(key);
            let note = reads::note(&self.store.connection, &key, revision).await?;
            self.known = (revision, note::holder(&note, revision, false));
        }
        Ok(match self.known.0 == revision {
            true => self.known.1.clone(),
            false => note::holder(b"", revision, false),
        })
    }
}
