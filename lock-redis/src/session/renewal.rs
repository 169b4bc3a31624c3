//! The renewal round: one request keeps all locks and all waiting attempts of a client alive.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use lock_core::{Instant, Result, trace};
use tokio::{sync::Notify, time::timeout};
use uuid::Uuid;

use crate::{
    error::{self, STORE},
    session::{
        CLOCK, Failure, Lane, Session,
        attempt::{Entry, Role},
    },
    wire::{
        answer::{self, Seen},
        script::{self, Member, Turn},
    },
};

/// How much one request renews, counted in locks that are held alone. The server does nothing else
/// meanwhile, for one to three milliseconds.
const CHUNK: usize = 1000;
/// As how many of these every other entry counts.
const OTHER: usize = 5;
/// Waiters that want to ask at about the same time ask together.
const TOGETHER: Duration = Duration::from_millis(5);

/// Everything that a client holds and waits for, and when it is due.
#[derive(Debug, Default)]
pub(crate) struct Book {
    entries: HashMap<Uuid, Arc<Entry>>,
    /// Per TTL, when its entries are due.
    groups: BTreeMap<Duration, Instant>,
    /// Waiting entries that want to ask before their group does.
    asks: BTreeSet<(Instant, Uuid)>,
    closed: bool,
}

impl Book {
    /// Answers whether something is due earlier than before.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](lock_core::Error::Closed).
    pub(crate) fn enter(&mut self, entry: &Arc<Entry>) -> Result<bool> {
        if self.closed {
            return Err(error::closed());
        }
        self.entries.insert(entry.ticket.attempt, entry.clone());
        // A group outlives its entries until it is due, so that short holds do not set it up anew.
        let mut earlier = false;
        self.groups.entry(entry.ttl).or_insert_with(|| {
            earlier = true;
            CLOCK.now() + entry.period
        });
        Ok(earlier)
    }

    pub(crate) fn forget(&mut self, entry: &Entry) {
        self.entries.remove(&entry.ticket.attempt);
    }

    pub(crate) fn find(&self, attempt: Uuid) -> Option<Arc<Entry>> {
        self.entries.get(&attempt).cloned()
    }

    fn ask(&mut self, entry: &Entry, at: Instant) {
        self.asks.insert((at, entry.ticket.attempt));
    }

    /// After a reconnect: what was renewed meanwhile, and what was pushed, is not known.
    pub(crate) fn everything_is_due(&mut self) {
        let now = CLOCK.now();
        self.groups.values_mut().for_each(|due| *due = now);
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
        self.entries.values().cloned().collect()
    }

    fn next_due(&self) -> Instant {
        let ask = self.asks.first().map(|(at, _)| *at);
        self.groups.values().copied().chain(ask).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out what is due now.
    fn take_due(&mut self, now: Instant) -> Vec<Arc<Entry>> {
        let due: BTreeSet<_> =
            self.groups.iter().filter(|(_, at)| **at <= now).map(|(ttl, _)| *ttl).collect();
        let mut taken = Vec::new();
        if !due.is_empty() {
            let of_group = |entry: &&Arc<Entry>| due.contains(&entry.ttl);
            taken.extend(self.entries.values().filter(of_group).cloned());
        }
        for ttl in &due {
            match taken.iter().find(|entry| entry.ttl == *ttl) {
                Some(entry) => self.groups.insert(*ttl, now + entry.period),
                None => self.groups.remove(ttl),
            };
        }
        while let Some((at, attempt)) = self.asks.pop_first() {
            if at > now + TOGETHER {
                self.asks.insert((at, attempt));
                break;
            }
            let asking = self.entries.get(&attempt).filter(|entry| entry.asks_at(at));
            taken.extend(asking.filter(|entry| !due.contains(&entry.ttl)).cloned());
        }
        taken
    }
}

impl Session {
    /// Has an entry ask before its group is due.
    pub(crate) fn ask(&self, entry: &Entry, at: Instant) {
        let mut book = self.book();
        let before = book.next_due();
        book.ask(entry, at);
        if at < before {
            self.due.notify_one();
        }
    }

    /// Renews one held lock now. Answers when the confirmed request was sent; `None` if the lock is
    /// not the attempt's any more.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn renew(&self, entry: &Entry) -> Result<Option<Instant>> {
        // Whether it holds alone may change while the request is on its way.
        let command = script::round(&[], &[entry.turn()]);
        let deadline = CLOCK.now() + entry.ttl / 2;
        let (sent, value) =
            self.insist(Lane::First, "renew", &command, entry.patience(), deadline, None).await?;
        let (_, seen) = answer::rounded(&value, 0)?;
        Ok(matches!(seen[..], [Seen::Holds(_)]).then_some(sent))
    }

    async fn round(&self) {
        let now = CLOCK.now();
        let entries = self.book().take_due(now);
        let with_role = |role| {
            entries.iter().filter(move |entry| entry.role(now) == Some(role)).collect::<Vec<_>>()
        };
        let (alone, mut others) = (with_role(Role::Holds), with_role(Role::Shares));
        let held = alone.len() + others.len();
        others.extend(with_role(Role::Waits));
        let (mut alone, mut others) = (&alone[..], &others[..]);
        while !alone.is_empty() || !others.is_empty() {
            let (now, later) = alone.split_at(alone.len().min(CHUNK));
            let room = (CHUNK - now.len()) / OTHER;
            let (beside, rest) = others.split_at(others.len().min(room));
            (alone, others) = (later, rest);
            if let Err(failure) = self.renew_chunk(now, beside).await {
                return self.round_failed(&failure);
            }
        }
        if held > 0 {
            trace::renewed(STORE, held);
        }
    }

    async fn renew_chunk(
        &self,
        alone: &[&Arc<Entry>],
        others: &[&Arc<Entry>],
    ) -> Result<(), Failure> {
        let limit = alone.iter().chain(others).map(|entry| entry.patience()).min();
        let sent = CLOCK.now();
        let command = script::round(&members(alone), &turns(others));
        let answer = self.call(&command, limit.unwrap_or_default()).await?;
        let Ok((renewed, seen)) = answer::rounded(&answer, alone.len()) else { return Ok(()) };
        for (entry, mine) in alone.iter().zip(renewed) {
            entry.renewed(sent, mine);
        }
        for (entry, seen) in others.iter().zip(seen) {
            if let Some(at) = entry.seen(sent, seen) {
                self.book().ask(entry, at);
            }
        }
        Ok(())
    }

    fn round_failed(&self, failure: &Failure) {
        let why: &dyn std::fmt::Display = match failure {
            Failure::Closed => return,
            Failure::Down(error) => error,
            Failure::Lost(error) | Failure::Refused(error) => error,
        };
        trace::renewal_failed(STORE, why);
        let now = CLOCK.now();
        let mut book = self.book();
        book.try_soon();
        let entries: Vec<_> = book.entries.values().cloned().collect();
        drop(book);
        entries.iter().for_each(|entry| entry.expire_wait(now));
    }
}

impl Entry {
    pub(crate) fn member(&self) -> Member<'_> {
        (&self.key, &self.ticket, self.ttl)
    }

    /// As a member of one more round.
    fn turn(&self) -> Turn<'_> {
        (self.member(), self.turns.fetch_add(1, Ordering::Relaxed))
    }
}

fn members<'a>(entries: &[&'a Arc<Entry>]) -> Vec<Member<'a>> {
    entries.iter().map(|entry| entry.member()).collect()
}

fn turns<'a>(entries: &[&'a Arc<Entry>]) -> Vec<Turn<'a>> {
    entries.iter().map(|entry| entry.turn()).collect()
}

/// Runs rounds until the session is gone.
pub(crate) async fn run(session: Weak<Session>, earlier: Arc<Notify>) {
    loop {
        let Some(due) = session.upgrade().map(|session| session.book().next_due()) else { return };
        let left = due.since(CLOCK.now());
        if due == Instant::NEVER {
            earlier.notified().await;
        } else {
            let _ = timeout(left, earlier.notified()).await;
        }
        let Some(session) = session.upgrade() else { return };
        if session.book().next_due() <= CLOCK.now() {
            session.round().await;
        }
    }
}
