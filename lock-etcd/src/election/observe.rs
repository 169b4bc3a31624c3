//! Reports the leader to observers: the present one, and then the newest.
//!
//! A watch of the queue only hints at changes: the queue is read once after it. A change during the
//! read is the next hint. Reads of the whole cluster one after the other never go back, so no older
//! value is reported after a newer one. Values in between may be left out.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Clock, Error, FencingToken, Kind, Leader, LockName, Observed, Result,
    deadline::jitter,
    keep::{self, limits::UNREAD, share::share},
};
use tokio::sync::{Mutex, mpsc};

use crate::{
    election::observers::{Last, Seen, Watching},
    error::{Failure, STORE},
    layout::{keys::Role, listing, note},
    queue::name::Hint,
    session::store::Store,
    wire::{connection::LONGEST_PAUSE, reads, requests::revision},
};

/// How often to read without a hint: watches have lost events before (etcd#18089).
const LOOK: Duration = Duration::from_secs(10);

/// One observer.
struct Observer {
    store: Arc<Store>,
    queue: Arc<str>,
    last: Arc<Mutex<Last>>,
    /// What it saw last.
    seen: Seen,
    /// `None` before the watch from that revision is opened.
    watching: Option<Watching>,
}

/// Observes a name until the receiver is dropped or the client is closed. Fails if the first read
/// does.
pub(crate) async fn observe(
    store: &Arc<Store>,
    name: &LockName,
) -> Result<mpsc::Receiver<Observed>> {
    let queue = store.layout.queue(name)?;
    let last = share(&store.observed, queue.clone(), Mutex::default);
    let mut observer =
        Observer { store: store.clone(), queue, last, seen: Seen::default(), watching: None };
    // In a task of its own: a caller that does not poll must not keep the name's others from reading.
    let reading = store.runtime.spawn(async move { (observer.read().await, observer) });
    let (read, observer) = reading.await.map_err(|_| Error::closed(STORE))?;
    read.map_err(|failure| failure.into_error("observe", false))?;
    let (out, observed) = mpsc::channel(UNREAD);
    let first = vec![observer.seen.leader.clone()];
    let tell = keep::observe::tell(observer, first, out);
    let closed = store.connection.closed.clone();
    store.runtime.spawn(closed.run_until_cancelled_owned(tell));
    Ok(observed)
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        let refused = self.hint().await;
        // A failure is that of a request, and was handled there.
        let mut failed = self.watching.is_none();
        let told = self.seen.leader.clone();
        loop {
            if failed {
                Clock::Boot.sleep(jitter(LONGEST_PAUSE)).await;
            }
            match self.read_after(refused).await {
                Ok(()) if self.seen.leader == told => return Ok(Vec::new()),
                Ok(()) => return Ok(vec![self.seen.leader.clone()]),
                Err(failure) if failure.kind.is_passing() => failed = true,
                Err(failure) => return Err(failure.into_error("observe", false)),
            }
        }
    }
}

impl Observer {
    /// Waits until there may be another leader. Returns on which generation of the connection etcd
    /// refused the watch, if it did.
    async fn hint(&mut self) -> Option<u64> {
        let Self { store, queue, seen, watching, .. } = self;
        let open = || Watching::from(&store.watcher, queue, seen.revision + 1);
        let hint = tokio::select! {
            hint = watching.get_or_insert_with(open).hints.recv() => hint,
            () = Clock::Boot.sleep(LOOK) => return None,
        };
        if !matches!(hint, Some(Hint::Changed)) {
            *watching = None;
        }
        match hint {
            Some(Hint::Refused(generation)) => Some(generation),
            _ => None,
        }
    }

    /// Reads, with a new login if the watch was refused but the read was not.
    async fn read_after(&mut self, refused: Option<u64>) -> Result<(), Failure> {
        self.read().await?;
        match refused {
            Some(generation) => self.store.connection.log_in_to_watch(generation).await,
            None => Ok(()),
        }
    }

    /// Reads the queue, unless another observer of the name has sent a read since this was called.
    async fn read(&mut self) -> Result<(), Failure> {
        let asked = Clock::Boot.now();
        let mut last = self.last.lock().await;
        if last.sent <= asked {
            let sent = Clock::Boot.now();
            let read = read(&self.store, &self.queue, &mut last).await;
            (last.sent, last.failure) = (sent, read.as_ref().err().cloned());
            last.seen = read.unwrap_or_default();
        }
        // Its failure is shared, too: in an outage the observers must not fail one after the other.
        match &last.failure {
            Some(failure) => Err(failure.clone()),
            None => {
                self.seen = last.seen.clone();
                Ok(())
            }
        }
    }
}

/// Reads who leads: the first in line, if it holds the lock alone.
async fn read(store: &Store, queue: &str, last: &mut Last) -> Result<Seen, Failure> {
    let answer = reads::read(&store.connection, queue).await?;
    let mut seen = Seen { revision: revision(answer.header())?, leader: None };
    let entries = listing::entries(answer.0.kvs).into_iter();
    let first = entries.min_by_key(|standing| standing.entry.revision);
    let Some(mut first) = first.filter(|first| first.entry.kind == Kind::Exclusive) else {
        return Ok(seen);
    };
    let revision = first.entry.revision;
    if first.role == Role::Candidate {
        if last.note.0 != revision {
            let key = String::from_utf8_lossy(&first.entry.key);
            last.note = (revision, reads::note(&store.connection, &key, revision).await?);
        }
        first.note.clone_from(&last.note.1);
    }
    let holder = note::read(&first).holder;
    if let (Some(_), Some(token)) = (&holder.description, holder.token) {
        last.floor = token.value().saturating_sub(revision.unsigned_abs());
    }
    // Without a note the token counts from the same floor as the leader before.
    let token = FencingToken::new(last.floor.saturating_add(revision.unsigned_abs()));
    seen.leader = Some(Leader::new(token, first.value, holder));
    Ok(seen)
}
