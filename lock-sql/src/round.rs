//! The renewal round: one script keeps all locks and all waiting attempts of a client alive.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Display,
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Instant, LockName, trace};
use tokio::{sync::Notify, time::timeout};
use uuid::Uuid;

use crate::{
    connections::Failure,
    entry::Entry,
    looks::Look,
    script::Script,
    session::{CHUNK, CLOCK, Session},
    turns::Rank,
};

/// How often what is long dead is removed, at most.
const SWEEP: Duration = Duration::from_secs(60);

/// Everything that a client holds and waits for, and when it is due.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) entries: HashMap<Uuid, Arc<Entry>>,
    /// Who waits, by name.
    pub(crate) waiting: HashMap<LockName, Vec<Arc<Entry>>>,
    /// When to look at which queue, and why.
    pub(crate) looks: BTreeMap<LockName, Look>,
    /// Who of this client asks for a name does so in turn.
    turns: HashMap<LockName, Weak<tokio::sync::Mutex<()>>>,
    /// How many of these there may be before those that are over are removed.
    turns_kept: usize,
    /// How often somebody has rung.
    pub(crate) rings: u64,
    /// Per TTL, when its entries are due for renewal.
    groups: BTreeMap<Duration, Instant>,
    swept: Instant,
    closed: bool,
}

impl Book {
    /// Answers whether something is due earlier than before; nothing if the client is closed.
    pub(crate) fn enter(&mut self, entry: &Arc<Entry>) -> Option<bool> {
        if self.closed {
            return None;
        }
        self.entries.insert(entry.attempt, entry.clone());
        // A group outlives its entries until it is due, so that short holds do not set it up anew.
        let mut earlier = false;
        self.groups.entry(entry.ttl).or_insert_with(|| {
            earlier = true;
            CLOCK.now() + entry.period
        });
        Some(earlier)
    }

    pub(crate) fn forget(&mut self, entry: &Entry) {
        self.entries.remove(&entry.attempt);
        if let Some(waiting) = self.waiting.get_mut(&entry.name) {
            waiting.retain(|other| other.attempt != entry.attempt);
            if waiting.is_empty() {
                self.waiting.remove(&entry.name);
                self.looks.remove(&entry.name);
            }
        }
    }

    pub(crate) fn turn(&mut self, name: &LockName) -> Arc<tokio::sync::Mutex<()>> {
        if let Some(turn) = self.turns.get(name).and_then(Weak::upgrade) {
            return turn;
        }
        // Seldom: among many names, each one's turn would look at all of them.
        if self.turns.len() >= self.turns_kept {
            self.turns.retain(|_, turn| turn.strong_count() > 0);
            self.turns_kept = self.turns.len() * 2 + 16;
        }
        let turn = Arc::default();
        self.turns.insert(name.clone(), Arc::downgrade(&turn));
        turn
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn find(&self, attempt: Uuid) -> Option<Arc<Entry>> {
        self.entries.get(&attempt).cloned()
    }

    /// After a failed round.
    fn try_soon(&mut self) {
        let now = CLOCK.now();
        for (ttl, due) in &mut self.groups {
            *due = (*due).min(now + *ttl / 10);
        }
    }

    /// Refuses new entries and hands out those that are there.
    pub(crate) fn close(&mut self) -> Vec<Arc<Entry>> {
        self.closed = true;
        self.groups.clear();
        self.looks.clear();
        self.waiting.clear();
        self.entries.drain().map(|(_, entry)| entry).collect()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    fn next_due(&self) -> Instant {
        self.groups.values().copied().min().unwrap_or(Instant::NEVER)
    }

    /// Takes out what is due now.
    fn take_due(&mut self, now: Instant) -> Vec<Arc<Entry>> {
        let due: BTreeSet<_> =
            self.groups.iter().filter(|(_, at)| **at <= now).map(|(ttl, _)| *ttl).collect();
        let of_group = |entry: &&Arc<Entry>| due.contains(&entry.ttl);
        let taken: Vec<_> = self.entries.values().filter(of_group).cloned().collect();
        for ttl in &due {
            match taken.iter().find(|entry| entry.ttl == *ttl) {
                Some(entry) => self.groups.insert(*ttl, now + entry.period),
                None => self.groups.remove(ttl),
            };
        }
        taken
    }

    /// Whether it is time to remove what is long dead.
    fn sweeps(&mut self, now: Instant) -> bool {
        let due = now.since(self.swept) >= SWEEP;
        if due {
            self.swept = now;
        }
        due
    }
}

impl Session {
    async fn round(&self) {
        let now = CLOCK.now();
        let mut entries = self.book().take_due(now);
        if !entries.is_empty() {
            self.database.check_pushes();
        }
        entries.retain(|entry| entry.is_renewed(now));
        for entries in entries.chunks(CHUNK) {
            if let Err(failure) = self.renew_chunk(entries).await {
                return self.round_failed(&failure);
            }
        }
        let held = entries.iter().filter(|entry| entry.is_held()).count();
        if held > 0 {
            trace::renewed(self.dialect().store(), held);
        }
        if !entries.is_empty() && self.book().sweeps(now) {
            // If it fails, the next one will do. The next round waits for it: it waits for nobody.
            let limit = Duration::from_secs(1);
            let _ = self.database.run(Rank::Renew, &self.script().sweep(), limit).await;
        }
    }

    async fn renew_chunk(&self, entries: &[Arc<Entry>]) -> Result<(), Failure> {
        let limit = entries.iter().map(|entry| entry.patience()).min().unwrap_or_default();
        let renew = |script: Script| script.renew(entries.iter().map(|entry| entry.attempt));
        let (sent, rows) = self.run(Rank::Renew, renew, limit).await?;
        let alive: HashSet<_> = rows.iter().map(|row| row.attempt).collect();
        for entry in entries {
            match alive.contains(&entry.attempt) {
                true => entry.renewed(sent),
                false => entry.gone(),
            }
        }
        Ok(())
    }

    /// Finds out which of the locks that are held somebody has taken away: nobody was there to be
    /// told.
    #[cfg(feature = "postgres")]
    pub(crate) async fn check_held(&self) {
        let held = |entry: &&Arc<Entry>| entry.is_held();
        let entries: Vec<_> = self.book().entries.values().filter(held).cloned().collect();
        for entries in entries.chunks(CHUNK) {
            let held = |script: Script| script.held(entries.iter().map(|entry| entry.attempt));
            // If it fails, the next renewal finds out.
            let answer = self.run(Rank::HandOver, held, Duration::from_secs(2)).await;
            let Ok((_, rows)) = answer else { return };
            let there: HashSet<_> = rows.iter().map(|row| row.attempt).collect();
            let gone = entries.iter().filter(|entry| !there.contains(&entry.attempt));
            gone.for_each(|entry| entry.gone());
        }
    }

    fn round_failed(&self, failure: &Failure) {
        let why: &dyn Display = match failure {
            Failure::Closed => return,
            Failure::Barred(error) => error,
            Failure::Down(error) | Failure::Lost(error) | Failure::Refused(error) => error,
        };
        trace::renewal_failed(self.dialect().store(), why);
        let now = CLOCK.now();
        let mut book = self.book();
        book.try_soon();
        let entries: Vec<_> = book.entries.values().cloned().collect();
        drop(book);
        entries.iter().for_each(|entry| entry.expire_wait(now));
    }
}

/// Runs rounds until the session is gone.
pub(crate) async fn run(session: Weak<Session>, earlier: Arc<Notify>) {
    loop {
        let Some(due) = session.upgrade().map(|session| session.book().next_due()) else { return };
        until(due, &earlier).await;
        let Some(session) = session.upgrade() else { return };
        if session.book().next_due() <= CLOCK.now() {
            session.round().await;
        }
    }
}

/// Waits until something is due, or something else is due earlier.
pub(crate) async fn until(due: Instant, earlier: &Notify) {
    if due == Instant::NEVER {
        return earlier.notified().await;
    }
    // A timer ends at a full millisecond: what is due already does not wait for one.
    let left = due.since(CLOCK.now());
    if !left.is_zero() {
        let _ = timeout(left, earlier.notified()).await;
    }
}
