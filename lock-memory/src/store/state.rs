//! The state of the store, and the rule by which it changes. It has no clock of its own, no task,
//! and no I/O.

use std::collections::{BTreeMap, HashMap, VecDeque};

use lock_core::{
    Entry, FencingToken, Holder, Instant, Kind, Leader, LockName, Request, Wait, queue,
};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

pub(crate) use super::entry::{Grant, Push, Stored};
use super::{entry::StoredMark, observers::Watching};
use crate::{defect::Hooks, wire::network::Network};

#[derive(Debug, Default)]
pub(crate) struct State {
    /// One counter for all names, so that it survives the deletion of any of them.
    pub(crate) last_token: u64,
    /// The highest token to which the floor was raised.
    pub(crate) floor: u64,
    pub(crate) names: BTreeMap<LockName, VecDeque<Stored>>,
    pub(crate) marks: BTreeMap<LockName, StoredMark>,
    pub(crate) observers: HashMap<LockName, Vec<Watching>>,
    pub(crate) hooks: Hooks,
}

/// The store's answer to an upgrade of a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upgrade {
    Done(FencingToken),
    Busy,
    Gone,
}

/// A request for a lock, as a client sends it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) attempt: Uuid,
    /// The store has answered before that the attempt waits, so its entry must exist.
    pub(crate) known: bool,
    pub(crate) tell: UnboundedSender<Push>,
    pub(crate) network: Network,
}

/// The store's answer to a request for a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Granted(Grant),
    /// In the queue, with the number of entries before it, and when the first holder expires.
    Waiting {
        position: usize,
        look_again: Instant,
    },
    Busy,
    /// The attempt was in the queue, but is not there any more.
    Gone,
    /// The other attempts name this limit of permits.
    OtherLimit(u32),
}

impl State {
    pub(crate) fn acquire(&mut self, asked: Asked, now: Instant) -> Answer {
        let again = self.hooks.enters_twice(&asked.request, asked.known);
        let Asked {
            request: Request { name, kind, ttl, wait, value, holder, .. }, attempt, ..
        } = asked;
        self.settle(&name, now);
        let entries = self.names.entry(name.clone()).or_default();
        // The same attempt may ask again, because its reply was lost.
        if again || !entries.iter().any(|entry| entry.attempt == attempt) {
            if asked.known {
                return Answer::Gone;
            }
            let before: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
            if let Some(limit) = queue::other_limit(before.iter().copied(), kind) {
                return Answer::OtherLimit(limit);
            }
            let admitted = queue::judge(&before, kind) == queue::Verdict::Admitted;
            if wait != Wait::Queue && !admitted {
                return Answer::Busy;
            }
            entries.push_back(Stored {
                attempt,
                kind,
                value,
                holder,
                ttl,
                expires: now + ttl,
                queued_at: lock_core::wall_clock(),
                granted: None,
                tell: asked.tell,
                network: asked.network,
            });
        }
        self.settle(&name, now);
        self.answer(&name, attempt)
    }

    /// Returns whether all entries are the attempt's own, or shared beside a shared one.
    pub(crate) fn is_free_for(&mut self, asked: &Asked, now: Instant) -> bool {
        let Request { name, kind, .. } = &asked.request;
        self.settle(name, now);
        let mut entries = self.names.get(name).into_iter().flatten();
        let beside = |entry: &Stored| entry.kind == Kind::Shared && *kind == Kind::Shared;
        entries.all(|entry| entry.attempt == asked.attempt || beside(entry))
    }

    fn answer(&self, name: &LockName, attempt: Uuid) -> Answer {
        let entries = self.names.get(name).into_iter().flatten();
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

    pub(crate) fn grant_of(&self, name: &LockName, attempt: Uuid) -> Option<Grant> {
        self.names.get(name)?.iter().find(|entry| entry.attempt == attempt)?.granted
    }

    /// Removes expired entries, grants the lock to entries that may hold it now, and sends changes
    /// of the leader.
    pub(crate) fn settle(&mut self, name: &LockName, now: Instant) {
        self.grant(name, now);
        let Some(observers) = self.observers.get_mut(name) else { return };
        let first = self.names.get(name).and_then(VecDeque::front);
        let leader = first.filter(|first| self.hooks.leads(first.kind)).and_then(leader);
        observers.retain_mut(|observer| observer.tell(&leader));
        if observers.is_empty() {
            self.observers.remove(name);
        }
    }

    fn grant(&mut self, name: &LockName, now: Instant) {
        let hooks = self.hooks;
        let Some(entries) = self.names.get_mut(name) else { return };
        entries.retain_mut(|entry| {
            hooks.before_expiry(entry, now);
            if entry.expires <= now {
                let _ = entry.tell.send(Push::Gone(entry.attempt));
            }
            entry.expires > now
        });
        if entries.is_empty() {
            self.names.remove(name);
            return;
        }
        hooks.before_grants(entries);
        let beside = hooks.grants_beside_the_first(entries);
        let mut before = Vec::new();
        for (place, entry) in entries.iter_mut().enumerate() {
            let kind = hooks.counted(entry.kind);
            let admitted = queue::judge(&before, kind) == queue::Verdict::Admitted;
            if entry.granted.is_none() && (admitted || (beside && place == 1)) {
                self.last_token += 1;
                let token = FencingToken::new(self.last_token);
                let grant = Grant { token, at: now, since: lock_core::wall_clock() };
                // A grant starts a TTL of its own, so that the wait does not use it up.
                entry.expires = now + entry.ttl;
                entry.granted = Some(grant);
                let _ = entry.tell.send(Push::Granted(entry.attempt, grant));
            }
            if !hooks.is_overtaken(entry) {
                before.push(kind);
            }
        }
    }
}

/// Returns the leader, if the first entry holds the lock.
fn leader(first: &Stored) -> Option<Leader> {
    let grant = first.granted?;
    let holder = shown_holder(first);
    let value = first.value.as_deref().unwrap_or_default().to_vec();
    Some(Leader::new(grant.token, value, holder))
}

pub(crate) fn shown(entries: &VecDeque<Stored>, now: Instant) -> Vec<Entry> {
    let show = |entry: &Stored| {
        let holds = entry.granted.is_some();
        let shown = Entry::new(Some(entry.attempt), shown_holder(entry))
            .with_kind(entry.kind)
            .with_ttl_left(entry.expires.since(now));
        if holds { shown.holding() } else { shown }
    };
    entries.iter().map(show).collect()
}

fn shown_holder(entry: &Stored) -> Holder {
    let (since, token) = entry.granted.map(|grant| (grant.since, grant.token)).unzip();
    Holder::new(Some(entry.holder.to_string()), token).queued(Some(entry.queued_at)).granted(since)
}
