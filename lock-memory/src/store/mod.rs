//! The store: what a server would be. Its memory and its rule are in [`state`](self::state).

pub(crate) mod detach;
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
    Clock, Entry, Error, FencingToken, Holder, Instant, Kind, Leader, LockName, Result, TokenFloor,
    keep::poison::lock,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use uuid::Uuid;

use self::{
    observers::Watching,
    state::{Answer, Asked, Grant, State, Stored, Told, Upgrade, shown},
};
use crate::{defect::Defect, wire::network::Network};

/// A store of locks in this process. Cheap to clone; all clones are the same store.
///
/// [`client`](Self::client) connects to it; each client is like a process of its own. The faults
/// here are the server's; a client's own are at [`MemoryLock::faults`](crate::MemoryLock::faults), and
/// those of all clients at [`faults`](Self::faults).
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    clients: Mutex<Vec<Weak<Client>>>,
    refuses: AtomicBool,
    defect: Option<Defect>,
}

/// A client, as the store knows it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) store: MemoryStore,
    pub(crate) network: Network,
    pub(crate) tell: UnboundedSender<Told>,
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
    /// An empty store, shared with nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with a defect, to test the properties with.
    #[cfg(feature = "properties")]
    pub fn broken(defect: Defect) -> Self {
        Self(Arc::new(Shared { defect: Some(defect), ..Shared::default() }))
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
            lock(&self.0.state).last_token = 0;
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
        let mut state = lock(&self.0.state);
        let names: Vec<_> = state.names.keys().cloned().collect();
        for name in &names {
            state.settle(name, now, self.0.defect);
        }
        state.names.iter().map(|(name, entries)| (name.clone(), shown(entries, now))).collect()
    }

    /// Whether connects by URL are refused from now on, as of a server that is down:
    /// [`Error::Unavailable`](lock_core::Error::Unavailable). So a test can have the code under test
    /// start before its store. Clients that are connected go on.
    pub fn refuse_connects(&self, refuse: bool) {
        self.0.refuses.store(refuse, Ordering::Release);
    }

    pub(crate) fn refuses(&self) -> bool {
        self.0.refuses.load(Ordering::Acquire)
    }

    /// What a restart of a server with its data does to the entries: nothing.
    #[cfg(feature = "properties")]
    pub fn restart(&self) {
        if self.has(Defect::ForgetsWaitersInARestart) {
            let mut state = lock(&self.0.state);
            for entries in state.names.values_mut() {
                entries.retain(|entry| entry.granted.is_some());
            }
        }
    }

    /// A client connects, which is told by `tell`.
    pub(crate) fn enter(&self, tell: UnboundedSender<Told>) -> Arc<Client> {
        let (network, closed) = (Network::default(), AtomicBool::new(false));
        let client = Arc::new(Client { store: self.clone(), network, tell, closed });
        let mut clients = lock(&self.0.clients);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        client
    }

    /// The clients that are connected, in the order in which they connected.
    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        let clients = lock(&self.0.clients);
        let connected = clients.iter().filter_map(Weak::upgrade);
        connected.filter(|client| client.check_open().is_ok()).collect()
    }

    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.0.defect == Some(defect)
    }

    pub(crate) fn acquire(&self, asked: &Asked) -> Answer {
        let now = Clock::Tokio.now();
        let mut asked = asked.clone();
        if self.has(Defect::FoldsCase) {
            asked.name = folded(&asked.name);
        }
        lock(&self.0.state).acquire(asked, now, self.0.defect)
    }

    /// Takes all names, or none.
    pub(crate) fn try_all(&self, all: &[Asked]) -> Option<Vec<Grant>> {
        let (now, defect) = (Clock::Tokio.now(), self.0.defect);
        let mut state = lock(&self.0.state);
        let free = all.iter().all(|asked| state.is_free_for(asked, now, defect));
        if !free && !self.has(Defect::KeepsPartsOfSets) {
            drop(state);
            // Taken by an earlier sending whose reply was lost, and one of them was lost since.
            all.iter().for_each(|asked| self.leave(&asked.name, asked.attempt));
            return None;
        }
        let grant = |asked: &Asked| match state.acquire(asked.clone(), now, defect) {
            Answer::Granted(grant) => Some(grant),
            _ => None,
        };
        let grants: Vec<_> = all.iter().map(grant).collect();
        grants.into_iter().collect()
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

    /// Observes a name: the leader of this moment, then every change.
    pub(crate) fn observe(&self, name: &LockName) -> UnboundedReceiver<Option<Leader>> {
        let (watching, changes) = Watching::new();
        let mut state = lock(&self.0.state);
        state.observers.entry(name.clone()).or_default().push(watching);
        state.settle(name, Clock::Tokio.now(), self.0.defect);
        changes
    }

    /// When the name's leader expires unless it is renewed; what has expired is gone afterwards.
    pub(crate) fn next_expiry(&self, name: &LockName) -> Instant {
        self.contents_of(name);
        let state = lock(&self.0.state);
        let first = state.names.get(name).and_then(VecDeque::front);
        first.map_or(Instant::NEVER, |first| first.expires)
    }

    /// Says a new value; answers whether the attempt still leads.
    pub(crate) fn publish(&self, name: &LockName, attempt: Uuid, value: &[u8]) -> bool {
        let mut found = false;
        self.change(name, |entries| {
            if let Some(mine) = entries.iter_mut().find(|entry| entry.attempt == attempt) {
                found = true;
                if !self.has(Defect::ProclaimsNothing) {
                    mine.value = Some(value.into());
                }
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

    /// Takes away what one client holds under a name, and tells it; answers how many grants that was.
    pub(crate) fn lose(&self, name: &LockName, whose: &UnboundedSender<Told>) -> usize {
        let mut held = Vec::new();
        self.change(name, |entries| {
            let theirs =
                |entry: &&Stored| entry.granted.is_some() && entry.tell.same_channel(whose);
            held = entries.iter().filter(theirs).map(|entry| entry.attempt).collect();
        });
        held.into_iter().filter(|attempt| self.revoke(name, *attempt)).count()
    }

    pub(crate) fn token_floor(&self) -> TokenFloor {
        let state = lock(&self.0.state);
        TokenFloor::new(FencingToken::new(state.floor), FencingToken::new(state.last_token))
    }

    /// Later grants count from there. An upgrade is one of them.
    pub(crate) fn raise_token_floor(&self, above: FencingToken) -> TokenFloor {
        let mut state = lock(&self.0.state);
        state.floor = state.floor.max(above.value());
        state.last_token = state.last_token.max(above.value());
        drop(state);
        self.token_floor()
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
                // Asked before, and the answer was lost.
                Some(mine) if mine.kind == Kind::Exclusive => Upgrade::Done(FencingToken::new(0)),
                Some(_) if !alone => Upgrade::Busy,
                Some(mine) => {
                    // Granted anew, with a new token, when the name is settled.
                    (mine.kind, mine.granted) = (Kind::Exclusive, None);
                    Upgrade::Done(FencingToken::new(0))
                }
            };
        });
        if let Upgrade::Done(_) = upgrade {
            let granted = lock(&self.0.state).grant_of(name, attempt);
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
        self.change(name, |stored| entries = shown(stored, Clock::Tokio.now()));
        entries
    }

    /// Settles a name, changes its entries, and settles it again.
    pub(crate) fn change(&self, name: &LockName, change: impl FnOnce(&mut VecDeque<Stored>)) {
        let now = Clock::Tokio.now();
        let mut state = lock(&self.0.state);
        state.settle(name, now, self.0.defect);
        if let Some(entries) = state.names.get_mut(name) {
            change(entries);
            state.settle(name, now, self.0.defect);
        }
    }
}

fn nameless(mut entry: Entry) -> Entry {
    entry.holder = Holder::default();
    entry
}

fn folded(name: &LockName) -> LockName {
    LockName::new(name.as_str().to_ascii_lowercase()).unwrap_or_else(|_| name.clone())
}
