//! The store: what a server would be. No clock of its own, no task, no I/O.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use lock_core::{Clock, Entry, FencingToken, Holder, Instant, Kind, LockName, queue};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use crate::{defect::Defect, fault::Faults};

/// A store of locks in this process. Cheap to clone; all clones are the same store.
///
/// [`client`](Self::client) connects to it; each client is like a process of its own. The faults
/// here are the server's; a client's own are at [`MemoryLock::faults`](crate::MemoryLock::faults).
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    defect: Option<Defect>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// One counter for all names, so that it survives the deletion of any of them.
    last_token: u64,
    names: BTreeMap<LockName, VecDeque<Stored>>,
}

/// One entry of a queue.
#[derive(Debug)]
struct Stored {
    attempt: Uuid,
    kind: Kind,
    holder: Arc<str>,
    ttl: Duration,
    /// Gone at this instant unless it is renewed.
    expires: Instant,
    granted: Option<Grant>,
    tell: UnboundedSender<Told>,
    faults: Faults,
}

/// What a grant is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) token: FencingToken,
    pub(crate) at: Instant,
    since: SystemTime,
}

/// What the store answers to a reader who wants to write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upgrade {
    Done(FencingToken),
    Busy,
    Gone,
}

/// What the store pushes to a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// A waiting attempt holds the lock now.
    Granted(Uuid, Grant),
    /// The attempt's entry is gone.
    Gone(Uuid),
}

/// A new entry, as a client sends it.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: LockName,
    pub(crate) attempt: Uuid,
    pub(crate) kind: Kind,
    pub(crate) holder: Arc<str>,
    pub(crate) ttl: Duration,
    pub(crate) queue: bool,
    /// The store has answered before that the attempt waits: it must be there.
    pub(crate) known: bool,
    pub(crate) tell: UnboundedSender<Told>,
    pub(crate) faults: Faults,
}

/// What the store answers to a wish.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Granted(Grant),
    /// In the queue; how many are before it, and when the first holder expires.
    Waiting {
        position: usize,
        look_again: Instant,
    },
    Busy,
    /// The attempt was in the queue and is not any more.
    Gone,
    /// Others count with this many permits.
    OtherLimit(u32),
}

impl MemoryStore {
    /// An empty store, shared with nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with a defect, to test the properties with.
    #[cfg(feature = "properties")]
    pub fn broken(defect: Defect) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), defect: Some(defect) }))
    }

    /// Lets the lock's holder expire now, as if its TTL had passed without a renewal. A holder
    /// whose network is not cut is told at once; cut it first to play a holder that was paused.
    pub fn expire(&self, name: &LockName) {
        self.change(name, |entries| {
            if let Some(holder) = entries.front_mut() {
                holder.expires = Instant::default();
            }
        });
    }

    /// Deletes everything under a name, holder and waiters, as an operator would.
    pub fn delete(&self, name: &LockName) {
        if self.has(Defect::RestartsTokens) {
            self.lock().last_token = 0;
        }
        self.change(name, |entries| {
            for entry in entries.drain(..) {
                let _ = entry.tell.send(Told::Gone(entry.attempt));
            }
        });
    }

    /// Everything in the store: each name with its entries, the holder first.
    pub fn contents(&self) -> Vec<(LockName, Vec<Entry>)> {
        let now = Clock::Tokio.now();
        let mut state = self.lock();
        let names: Vec<_> = state.names.keys().cloned().collect();
        for name in &names {
            state.settle(name, now, self.0.defect);
        }
        state.names.iter().map(|(name, entries)| (name.clone(), shown(entries))).collect()
    }

    /// What a restart of a server with its data does to the entries: nothing.
    #[cfg(feature = "properties")]
    pub fn restart(&self) {
        if self.has(Defect::ForgetsWaitersInARestart) {
            let mut state = self.lock();
            for entries in state.names.values_mut() {
                entries.retain(|entry| entry.granted.is_some());
            }
        }
    }

    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.0.defect == Some(defect)
    }

    pub(crate) fn acquire(&self, wish: &Wish) -> Answer {
        let now = Clock::Tokio.now();
        let mut wish = wish.clone();
        if self.has(Defect::FoldsCase) {
            wish.name = folded(&wish.name);
        }
        self.lock().acquire(wish, now, self.0.defect)
    }

    /// Removes the attempt's own entry; "not mine" is no error.
    pub(crate) fn release(&self, name: &LockName, attempt: Uuid) {
        self.remove(name, attempt, self.has(Defect::ReleasesByName));
    }

    /// Removes the attempt's own entry: it leaves the queue, or gives back what it never used.
    pub(crate) fn leave(&self, name: &LockName, attempt: Uuid) {
        self.remove(name, attempt, false);
    }

    fn remove(&self, name: &LockName, attempt: Uuid, by_name: bool) {
        let folded = self.has(Defect::FoldsCase).then(|| folded(name));
        self.change(folded.as_ref().unwrap_or(name), |entries| {
            let mine = entries.iter().position(|entry| entry.attempt == attempt);
            if mine.or(by_name.then_some(0)).is_some_and(|i| i < entries.len()) {
                entries.remove(mine.unwrap_or(0));
            }
        });
    }

    /// Extends the attempt's own entry by its TTL; answers whether it is still there.
    pub(crate) fn renew(&self, name: &LockName, attempt: Uuid) -> bool {
        let now = Clock::Tokio.now();
        let folded = self.has(Defect::FoldsCase).then(|| folded(name));
        let mut found = false;
        self.change(folded.as_ref().unwrap_or(name), |entries| {
            if let Some(mine) = entries.iter_mut().find(|entry| entry.attempt == attempt) {
                mine.expires = now + mine.ttl;
                found = true;
            }
        });
        found
    }

    /// Names in use.
    pub(crate) fn names(&self, prefix: &str) -> Vec<LockName> {
        let contents = self.contents().into_iter().map(|(name, _)| name);
        contents.filter(|name| name.as_str().starts_with(prefix)).collect()
    }

    /// Removes whoever's entry it is, and tells its owner.
    pub(crate) fn revoke(&self, name: &LockName, attempt: Uuid) -> bool {
        let mut found = false;
        self.change(name, |entries| {
            if let Some(at) = entries.iter().position(|entry| entry.attempt == attempt) {
                found = true;
                if let Some(victim) =
                    entries.remove(at).filter(|_| !self.has(Defect::RevokesInSilence))
                {
                    let _ = victim.tell.send(Told::Gone(attempt));
                }
            }
        });
        found
    }

    /// Makes an exclusive entry a shared one; answers whether it is still there.
    pub(crate) fn downgrade(&self, name: &LockName, attempt: Uuid) -> bool {
        let mut found = false;
        self.change(name, |entries| {
            if let Some(mine) = entries.iter_mut().find(|entry| entry.attempt == attempt) {
                mine.kind = Kind::Shared;
                found = true;
            }
        });
        found
    }

    /// Makes a shared entry an exclusive one with a new grant, if it is the only one.
    pub(crate) fn try_upgrade(&self, name: &LockName, attempt: Uuid) -> Upgrade {
        let mut upgrade = Upgrade::Gone;
        self.change(name, |entries| {
            let alone = entries.len() == 1;
            let mine = entries.iter_mut().find(|entry| entry.attempt == attempt);
            upgrade = match mine {
                None => Upgrade::Gone,
                Some(_) if !alone => Upgrade::Busy,
                Some(mine) => {
                    // Granted anew, with a new token, when the name is settled; asked twice, the
                    // first answer was lost, and the token rises once more.
                    (mine.kind, mine.granted) = (Kind::Exclusive, None);
                    Upgrade::Done(FencingToken::new(0))
                }
            };
        });
        if let Upgrade::Done(_) = upgrade {
            let granted = self.lock().grant_of(name, attempt);
            upgrade = granted.map_or(Upgrade::Gone, |grant| Upgrade::Done(grant.token));
        }
        upgrade
    }

    pub(crate) fn inspect(&self, name: &LockName) -> Vec<Entry> {
        if self.has(Defect::HidesTheHolder) {
            return self.contents_of(name).into_iter().map(nameless).collect();
        }
        self.contents_of(name)
    }

    fn contents_of(&self, name: &LockName) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.change(name, |stored| entries = shown(stored));
        entries
    }

    /// Settles a name, changes its entries, and settles it again.
    fn change(&self, name: &LockName, change: impl FnOnce(&mut VecDeque<Stored>)) {
        let now = Clock::Tokio.now();
        let mut state = self.lock();
        state.settle(name, now, self.0.defect);
        if let Some(entries) = state.names.get_mut(name) {
            change(entries);
            state.settle(name, now, self.0.defect);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn acquire(&mut self, wish: Wish, now: Instant, defect: Option<Defect>) -> Answer {
        self.settle(&wish.name, now, defect);
        let entries = self.names.entry(wish.name.clone()).or_default();
        // The same attempt again: its reply was lost.
        if !entries.iter().any(|entry| entry.attempt == wish.attempt) {
            if wish.known {
                return Answer::Gone;
            }
            let before: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
            if let Some(limit) = queue::other_limit(before.iter().copied(), wish.kind) {
                return Answer::OtherLimit(limit);
            }
            if !wish.queue && queue::judge(&before, wish.kind) != queue::Verdict::Admitted {
                return Answer::Busy;
            }
            entries.push_back(Stored {
                attempt: wish.attempt,
                kind: wish.kind,
                holder: wish.holder,
                ttl: wish.ttl,
                expires: now + wish.ttl,
                granted: None,
                tell: wish.tell,
                faults: wish.faults,
            });
        }
        self.settle(&wish.name, now, defect);
        self.answer(&wish.name, wish.attempt)
    }

    fn answer(&self, name: &LockName, attempt: Uuid) -> Answer {
        let entries = self.names.get(name).map(VecDeque::as_slices);
        let entries = entries.iter().flat_map(|(a, b)| a.iter().chain(b.iter()));
        let mut look_again = Instant::NEVER;
        for (position, entry) in entries.enumerate() {
            match (entry.attempt == attempt, entry.granted) {
                (true, Some(grant)) => return Answer::Granted(grant),
                (true, None) => return Answer::Waiting { position, look_again },
                (false, Some(_)) => look_again = look_again.min(entry.expires),
                (false, None) => {}
            }
        }
        Answer::Gone
    }

    fn grant_of(&self, name: &LockName, attempt: Uuid) -> Option<Grant> {
        self.names.get(name)?.iter().find(|entry| entry.attempt == attempt)?.granted
    }

    /// Removes what has expired and grants what may hold the lock now.
    fn settle(&mut self, name: &LockName, now: Instant, defect: Option<Defect>) {
        let Some(entries) = self.names.get_mut(name) else { return };
        let immortal = defect == Some(Defect::KeepsCrashedHolders);
        entries.retain_mut(|entry| {
            let crashed = entry.faults.now().crashed;
            if immortal
                && entry.kind == Kind::Exclusive
                && entry.granted.is_some_and(|grant| crashed > Some(grant.at))
            {
                entry.expires = now + entry.ttl;
            }
            if entry.expires <= now {
                let _ = entry.tell.send(Told::Gone(entry.attempt));
            }
            entry.expires > now
        });
        if entries.is_empty() {
            self.names.remove(name);
            return;
        }
        disorder(entries, defect);
        let crowd = defect == Some(Defect::GrantsTwoOfACrowd)
            && entries.len() > 7
            && entries.iter().all(|entry| entry.kind == Kind::Exclusive);
        let mut before = Vec::new();
        for entry in entries.iter_mut() {
            let kind = seen_as(entry.kind, defect);
            let admitted = queue::judge(&before, kind) == queue::Verdict::Admitted;
            if entry.granted.is_none() && (admitted || (crowd && before.len() == 1)) {
                self.last_token += 1;
                let token = FencingToken::new(self.last_token);
                let grant = Grant { token, at: now, since: lock_core::wall_clock() };
                // A grant starts a TTL of its own: the wait must not use it up.
                entry.expires = now + entry.ttl;
                entry.granted = Some(grant);
                let _ = entry.tell.send(Told::Granted(entry.attempt, grant));
            }
            let passed = defect == Some(Defect::LetsReadersPass)
                && entry.granted.is_none()
                && entry.kind == Kind::Exclusive;
            if !passed {
                before.push(kind);
            }
        }
    }
}

/// The kind that a broken store takes an entry's for.
fn seen_as(kind: Kind, defect: Option<Defect>) -> Kind {
    match (kind, defect) {
        (Kind::Permit { limit, .. }, Some(Defect::CountsHoldersInsteadOfPermits)) => {
            Kind::Permit { weight: 1, limit }
        }
        _ => kind,
    }
}

/// The order in which a broken store serves its waiters.
fn disorder(entries: &mut VecDeque<Stored>, defect: Option<Defect>) {
    let free = entries.front().is_some_and(|first| first.granted.is_none());
    if defect == Some(Defect::ServesTheLastFirst)
        && free
        && entries.len() > 2
        && entries.iter().all(|entry| entry.kind == Kind::Exclusive)
    {
        entries.make_contiguous().reverse();
    }
}

fn shown(entries: &VecDeque<Stored>) -> Vec<Entry> {
    let show = |entry: &Stored| {
        let holds = entry.granted.is_some();
        let since = entry.granted.map(|grant| grant.since);
        let token = entry.granted.map(|grant| grant.token);
        let holder = Holder::new(Some(entry.holder.to_string()), since, token);
        let shown = Entry::new(Some(entry.attempt), holder).with_kind(entry.kind);
        if holds { shown.holding() } else { shown }
    };
    entries.iter().map(show).collect()
}

fn nameless(mut entry: Entry) -> Entry {
    entry.holder = Holder::default();
    entry
}

fn folded(name: &LockName) -> LockName {
    LockName::new(name.as_str().to_ascii_lowercase()).unwrap_or_else(|_| name.clone())
}
