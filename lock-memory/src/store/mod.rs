//! The store, in the place of a server. Its memory and its rule are in [`state`](self::state).

mod convert;
mod detach;
pub(crate) mod entry;
mod marks;
mod observers;
mod registry;
pub(crate) mod state;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use lock_core::{
    Clock, Entry, Error, FencingToken, Instant, Leader, LockName, Result, TokenFloor,
    keep::poison::lock,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use uuid::Uuid;

use self::{
    entry::place_of,
    observers::Watching,
    state::{Answer, Asked, Grant, Push, State, Stored, shown},
};
use crate::{
    defect::{Defect, Hooks},
    wire::network::Network,
};

/// A store of locks in this process. Cheap to clone; all clones are the same store.
///
/// [`client`](Self::client) connects to it; each client is like a process of its own. The faults
/// here are the server's. [`MemoryLock::faults`](crate::MemoryLock::faults) returns a client's own,
/// and [`faults`](Self::faults) the ones of all clients.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    clients: Mutex<Vec<Weak<Client>>>,
    refuses: AtomicBool,
    hooks: Hooks,
}

/// The store's view of a client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) store: MemoryStore,
    pub(crate) network: Network,
    pub(crate) tell: UnboundedSender<Push>,
    closed: AtomicBool,
}

impl Client {
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::closed("memory")),
            false => Ok(()),
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

impl MemoryStore {
    /// Makes an empty store, which is shared with no other code.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a store with a defect, to test the properties.
    #[cfg(feature = "properties")]
    pub fn broken(defect: Defect) -> Self {
        let hooks = Hooks::of(defect);
        let state = State { hooks, ..State::default() }.into();
        Self(Arc::new(Shared { hooks, state, ..Shared::default() }))
    }

    /// Lets the lock's holder expire now, as if its TTL had passed without a renewal. A holder with
    /// a working network is notified at once. Cut it first to simulate a paused holder.
    pub fn expire(&self, name: &LockName) {
        self.change(name, |entries| {
            if let Some(holder) = entries.front_mut() {
                holder.expires = Instant::default();
            }
        });
    }

    /// Deletes everything under a name, holder and waiters, as an operator would.
    pub fn delete(&self, name: &LockName) {
        self.hooks().before_deletion(&mut lock(&self.0.state).last_token);
        self.change(name, |entries| {
            for entry in entries.drain(..) {
                let _ = entry.tell.send(Push::Gone(entry.attempt));
            }
        });
    }

    /// Returns the whole store: each name with its entries, the holder first.
    pub fn contents(&self) -> Vec<(LockName, Vec<Entry>)> {
        let now = Clock::Tokio.now();
        let mut state = lock(&self.0.state);
        let names: Vec<_> = state.names.keys().cloned().collect();
        for name in &names {
            state.settle(name, now);
        }
        state.names.iter().map(|(name, entries)| (name.clone(), shown(entries, now))).collect()
    }

    /// Sets whether connects by URL fail from now on with
    /// [`Error::Unavailable`](lock_core::Error::Unavailable), as with a server that is down. So a
    /// test can start the code under test before its store. Connected clients go on.
    pub fn refuse_connects(&self, refuse: bool) {
        self.0.refuses.store(refuse, Ordering::Release);
    }

    pub(crate) fn refuses(&self) -> bool {
        self.0.refuses.load(Ordering::Acquire)
    }

    /// Restarts the store with its data. Without a defect this changes no entry.
    #[cfg(feature = "properties")]
    pub fn restart(&self) {
        for entries in lock(&self.0.state).names.values_mut() {
            entries.retain(|entry| self.hooks().outlives_a_restart(entry));
        }
    }

    /// Connects a client, which gets its pushes by `tell`.
    pub(crate) fn enter(&self, tell: UnboundedSender<Push>) -> Arc<Client> {
        let (network, closed) = (Network::default(), AtomicBool::new(false));
        let client = Arc::new(Client { store: self.clone(), network, tell, closed });
        let mut clients = lock(&self.0.clients);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        client
    }

    /// Returns the connected clients, in the order in which they connected.
    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        let clients = lock(&self.0.clients);
        let connected = clients.iter().filter_map(Weak::upgrade);
        connected.filter(|client| client.check_open().is_ok()).collect()
    }

    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.hooks().has(defect)
    }

    pub(crate) fn hooks(&self) -> Hooks {
        self.0.hooks
    }

    pub(crate) fn acquire(&self, asked: &Asked) -> Answer {
        let now = Clock::Tokio.now();
        let mut asked = asked.clone();
        asked.request.name = self.hooks().name(&asked.request.name).into_owned();
        lock(&self.0.state).acquire(asked, now)
    }

    /// Takes all names, or none.
    pub(crate) fn try_all(&self, all: &[Asked]) -> Option<Vec<Grant>> {
        let now = Clock::Tokio.now();
        let mut state = lock(&self.0.state);
        let free = all.iter().all(|asked| state.is_free_for(asked, now));
        if !free && !self.has(Defect::KeepsPartsOfSets) {
            drop(state);
            // An earlier request, whose reply was lost, may have taken all, and one was lost since.
            self.leave_all(all);
            return None;
        }
        let grant = |asked: &Asked| match state.acquire(asked.clone(), now) {
            Answer::Granted(grant) => Some(grant),
            _ => None,
        };
        let grants: Vec<_> = all.iter().map(grant).collect();
        grants.into_iter().collect()
    }

    /// Removes the attempt's own entry. If there is none, it is no error.
    pub(crate) fn release(&self, name: &LockName, attempt: Uuid) {
        self.remove(name, |entries| self.hooks().released(entries, attempt));
    }

    /// Removes the attempt's own entry: a place in the queue, or a grant that was never used.
    pub(crate) fn leave(&self, name: &LockName, attempt: Uuid) {
        self.remove(name, |entries| place_of(entries, attempt));
    }

    /// Removes the entries of all these attempts.
    pub(crate) fn leave_all(&self, all: &[Asked]) {
        all.iter().for_each(|asked| self.leave(&asked.request.name, asked.attempt));
    }

    fn remove(&self, name: &LockName, which: impl FnOnce(&VecDeque<Stored>) -> Option<usize>) {
        self.change(&self.hooks().name(name), |entries| {
            drop(which(entries).and_then(|place| entries.remove(place)));
        });
    }

    /// Extends the attempt's own entry by its TTL. Returns whether it is still there.
    pub(crate) fn renew(&self, name: &LockName, attempt: Uuid) -> bool {
        let now = Clock::Tokio.now();
        self.change_own(&self.hooks().name(name), attempt, |mine| mine.expires = now + mine.ttl)
    }

    /// Lets the attempt's own entry never expire. For a defect.
    pub(crate) fn keep(&self, name: &LockName, attempt: Uuid) {
        self.change_own(name, attempt, |mine| mine.expires = Instant::NEVER);
    }

    /// Observes a name. The receiver gets the present leader, then every change.
    pub(crate) fn observe(&self, name: &LockName) -> UnboundedReceiver<Option<Leader>> {
        let (watching, changes) = Watching::new();
        let mut state = lock(&self.0.state);
        state.observers.entry(name.clone()).or_default().push(watching);
        state.settle(name, Clock::Tokio.now());
        changes
    }

    /// Returns when the name's leader expires unless it is renewed. Removes expired entries first.
    pub(crate) fn next_expiry(&self, name: &LockName) -> Instant {
        let first = self.change(name, |entries| entries.front().map(|first| first.expires));
        first.unwrap_or(Instant::NEVER)
    }

    /// Sets a new value. Returns whether the attempt still leads.
    pub(crate) fn publish(&self, name: &LockName, attempt: Uuid, value: &[u8]) -> bool {
        self.change_own(name, attempt, |mine| self.hooks().published(mine, value))
    }

    /// Returns the names in use.
    pub(crate) fn names(&self, prefix: &str) -> Vec<LockName> {
        let contents = self.contents().into_iter().map(|(name, _)| name);
        contents.filter(|name| name.as_str().starts_with(prefix)).collect()
    }

    /// Removes the entry of any client's attempt, and notifies that client. Returns whether there
    /// was one.
    pub(crate) fn revoke(&self, name: &LockName, attempt: Uuid) -> bool {
        self.change(name, |entries| {
            let victim = place_of(entries, attempt).and_then(|place| entries.remove(place));
            if let Some(victim) = victim.as_ref().filter(|_| !self.has(Defect::RevokesInSilence)) {
                let _ = victim.tell.send(Push::Gone(attempt));
            }
            victim.is_some()
        })
    }

    /// Revokes all grants of one client under a name, and notifies it. Returns how many there were.
    pub(crate) fn lose(&self, name: &LockName, whose: &UnboundedSender<Push>) -> usize {
        let theirs = |entry: &&Stored| entry.granted.is_some() && entry.tell.same_channel(whose);
        let held: Vec<_> = self.change(name, |entries| {
            entries.iter().filter(theirs).map(|entry| entry.attempt).collect()
        });
        held.into_iter().filter(|attempt| self.revoke(name, *attempt)).count()
    }

    pub(crate) fn token_floor(&self) -> TokenFloor {
        let state = lock(&self.0.state);
        TokenFloor::new(FencingToken::new(state.floor), FencingToken::new(state.last_token))
    }

    /// Raises the floor. The tokens of later grants, upgrades included, are above it.
    pub(crate) fn raise_token_floor(&self, above: FencingToken) -> TokenFloor {
        let mut state = lock(&self.0.state);
        state.floor = state.floor.max(above.value());
        state.last_token = state.last_token.max(above.value());
        drop(state);
        self.token_floor()
    }

    pub(crate) fn inspect(&self, name: &LockName) -> Vec<Entry> {
        let entries = self.change(name, |entries| shown(entries, Clock::Tokio.now()));
        entries.into_iter().map(|entry| self.hooks().shown(entry)).collect()
    }

    /// Settles a name, changes its entries, and settles it again. Returns the default value if
    /// there are no entries.
    fn change<T: Default>(
        &self,
        name: &LockName,
        change: impl FnOnce(&mut VecDeque<Stored>) -> T,
    ) -> T {
        let now = Clock::Tokio.now();
        let mut state = lock(&self.0.state);
        state.settle(name, now);
        let Some(entries) = state.names.get_mut(name) else { return T::default() };
        let changed = change(entries);
        state.settle(name, now);
        changed
    }

    /// Changes the attempt's own entry. Returns whether it is still there.
    fn change_own(&self, name: &LockName, own: Uuid, change: impl FnOnce(&mut Stored)) -> bool {
        self.change(name, |entries| {
            entries.iter_mut().find(|entry| entry.attempt == own).map(change).is_some()
        })
    }
}
