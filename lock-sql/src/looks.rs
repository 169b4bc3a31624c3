//! Looks at queues, for those who wait in them: one query for all that are due.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Instant, LockName, deadline::jitter, queue::admitted, trace};
use tokio::sync::Notify;

use crate::{
    connections::Failure,
    dialect::Dialect,
    entry::Entry,
    error::is_final,
    round::{Book, until},
    row::Row,
    script::Script,
    session::{CLOCK, Session},
    turns::Rank,
};

/// Looks that are due at about the same time are made together.
const TOGETHER: Duration = Duration::from_millis(2);
/// How much later than the entry before it expires the head looks, and the others: the head goes
/// first.
const HEAD_SLACK: Duration = Duration::from_millis(2);
const OTHERS_SLACK: Duration = Duration::from_millis(400);
/// After a look that failed.
const PAUSE: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(2);
/// A look that might be spared is made all the same after this long.
const LONGEST_SPARE: Duration = Duration::from_secs(1);

/// When to look at a queue, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    at: Instant,
    why: Why,
    /// How long to wait if there is nothing new.
    pace: Duration,
    /// When the first of those before it has expired, unless it was renewed.
    expiry: Instant,
    /// The version of the whole database at the last look, and when that was.
    seen: Option<(u64, Instant)>,
}

type Due = (LockName, Look, Vec<Arc<Entry>>);

/// The greater one counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Why {
    /// It is a while since the last one.
    Pace,
    /// Somebody said that something has changed.
    Rung,
    /// The entry before has expired unless it was renewed.
    Expiry,
}

/// How long the attempt at this place of the queue waits between two looks: the head looks often,
/// the tail seldom.
fn pace(dialect: Dialect, place: usize) -> Duration {
    let (step, longest) = match dialect {
        Dialect::Sqlite => (10, 250),
        Dialect::MySql => (25, 1000),
        // Only in case a push was lost.
        Dialect::Postgres => (5000, 5000),
    };
    let factor = u64::try_from(place.max(1)).unwrap_or(u64::MAX);
    Duration::from_millis(factor.saturating_mul(step).min(longest))
}

impl Book {
    /// Whoever waits in this queue looks now. Answers whether anybody does.
    pub(crate) fn ring(&mut self, name: &LockName) -> bool {
        self.rings += 1;
        let Some(look) = self.looks.get_mut(name) else { return false };
        look.at = Instant::default();
        look.why = look.why.max(Why::Rung);
        true
    }

    /// The first of this client who waits in this queue.
    #[cfg(any(feature = "sqlite", feature = "mysql"))]
    pub(crate) fn first_waiting(&self, name: &LockName) -> Option<u64> {
        self.waiting.get(name)?.iter().filter_map(|entry| entry.waiting_token()).min()
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&mut self) {
        self.rings += 1;
        for look in self.looks.values_mut() {
            look.at = Instant::default();
            look.why = look.why.max(Why::Rung);
        }
    }

    /// From now on the entry waits. `rings` is how often somebody had rung before it asked: whoever
    /// rang since may have meant this queue. Answers whether a look is due earlier than before.
    fn wait(&mut self, entry: &Arc<Entry>, mut look: Look, rings: u64) -> bool {
        if !self.entries.contains_key(&entry.attempt) {
            return false;
        }
        if self.rings != rings {
            (look.at, look.why) = (Instant::default(), Why::Rung);
        }
        let before = self.next_look();
        self.waiting.entry(entry.name.clone()).or_default().push(entry.clone());
        self.schedule(&entry.name, look);
        look.at < before
    }

    /// Never later than it is due already.
    fn schedule(&mut self, name: &LockName, look: Look) {
        let due = self.looks.entry(name.clone()).or_insert(look);
        if look.at < due.at {
            *due = Look { why: look.why.max(due.why), ..look };
        }
    }

    fn next_look(&self) -> Instant {
        self.looks.values().map(|look| look.at).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out the queues to look at now, with those who wait in them.
    fn take_looks(&mut self, now: Instant) -> Vec<Due> {
        let due = |(name, look): (&LockName, &Look)| {
            (look.at <= now + TOGETHER).then(|| (name.clone(), *look))
        };
        let due: Vec<_> = self.looks.iter().filter_map(due).collect();
        let mut taken = Vec::new();
        for (name, look) in due {
            let Some(waiting) = self.waiting.get_mut(&name) else { continue };
            waiting.retain(|entry| entry.is_waiting());
            if waiting.is_empty() {
                self.waiting.remove(&name);
                self.looks.remove(&name);
                continue;
            }
            taken.push((name.clone(), look, waiting.clone()));
            // Until it is answered, so that nobody's ring gets lost.
            self.looks.insert(name, Look { at: now + LIMIT * 2, why: Why::Pace, ..look });
        }
        taken
    }

    /// After a look: when to look again, unless somebody has rung meanwhile.
    fn look_again(&mut self, name: &LockName, look: Look) {
        if let Some(due) = self.looks.get_mut(name).filter(|due| due.why < Why::Rung) {
            *due = look;
        }
    }
}

/// How long the first to expire still lives of those before the one at this place. Not only of the
/// one that it waits for: the dead among the others would seem to stay, and nobody would tell it of
/// a change.
pub(crate) fn blocked_for(queue: &[Row], at: usize) -> Duration {
    queue[..at].iter().map(|row| row.left).min().unwrap_or_default()
}

pub(crate) fn next_look(dialect: Dialect, place: usize, left: Duration) -> Look {
    let (now, pace) = (CLOCK.now(), jitter(pace(dialect, place)));
    let slack = if place == 1 { HEAD_SLACK } else { jitter(OTHERS_SLACK) };
    let look = Look { at: now, why: Why::Pace, pace, expiry: now + left + slack, seen: None };
    look.after(now)
}

impl Look {
    /// The next one, if there is nothing new now.
    fn after(self, now: Instant) -> Self {
        match self.expiry <= now + self.pace {
            true => Self { at: self.expiry, why: Why::Expiry, ..self },
            false => Self { at: now + self.pace, why: Why::Pace, ..self },
        }
    }
}

impl Session {
    /// The entry waits: it is told when it is its turn.
    pub(crate) fn wait(&self, entry: &Arc<Entry>, look: Look, rings: u64) {
        if self.book().wait(entry, look, rings) {
            self.look_due.notify_one();
        }
    }

    async fn look(&self) {
        let mut due = self.book().take_looks(CLOCK.now());
        let seen = self.spare(&mut due).await;
        if due.is_empty() {
            return;
        }
        let names: Vec<_> = due.iter().map(|(name, ..)| name.clone()).collect();
        let bury = due.iter().any(|(_, look, _)| look.why == Why::Expiry);
        let look = |script: Script| script.look(&names, bury);
        match self.run(Rank::HandOver, look, LIMIT).await {
            Ok((_, rows)) => {
                for (name, _, waiting) in &due {
                    self.looked(name, waiting, &rows, seen);
                }
                if bury {
                    // Others may have waited for the dead, too.
                    names.iter().for_each(|name| self.database.changed_by(self, name));
                }
            }
            Err(failure) => self.look_failed(&due, &failure),
        }
    }

    /// Takes out the looks that need not be made, as nothing at all has changed in the database
    /// since the last one. Answers the version of the database that the others will see, or a later
    /// one.
    async fn spare(&self, due: &mut Vec<Due>) -> Option<(u64, Instant)> {
        if self.dialect() != Dialect::Sqlite || due.is_empty() {
            return None;
        }
        let now = CLOCK.now();
        let answer = self.database.run(Rank::HandOver, &self.script().version(), LIMIT).await.ok();
        let version = answer.and_then(|(_, rows)| Some(rows.first()?.token))?;
        let is_same = |seen: (u64, Instant)| seen.0 == version && now.since(seen.1) < LONGEST_SPARE;
        let (spared, needed) = due
            .drain(..)
            .partition(|(_, look, _)| look.why == Why::Pace && look.seen.is_some_and(is_same));
        *due = needed;
        let (mut book, spared): (_, Vec<Due>) = (self.book(), spared);
        for (name, look, _) in spared {
            book.look_again(&name, look.after(now));
        }
        Some((version, now))
    }

    fn looked(
        &self,
        name: &LockName,
        waiting: &[Arc<Entry>],
        rows: &[Row],
        seen: Option<(u64, Instant)>,
    ) {
        let of_name = |row: &&Row| row.name == name.as_str().as_bytes();
        let queue: Vec<Row> = rows.iter().filter(of_name).cloned().collect();
        let places: HashMap<_, _> =
            queue.iter().enumerate().map(|(at, row)| (row.attempt, at)).collect();
        let holders = admitted(queue.iter().map(|row| row.kind));
        for entry in waiting {
            match places.get(&entry.attempt) {
                Some(at) if queue[*at].left.is_zero() => entry.gone(),
                Some(at) if *at < holders => entry.admitted(),
                Some(_) => {}
                None => entry.gone(),
            }
        }
        let waits = |row: &&Row| waiting.iter().any(|entry| entry.attempt == row.attempt);
        if let Some(first) = queue[holders.min(queue.len())..].iter().find(waits) {
            let at = places[&first.attempt];
            let look = next_look(self.dialect(), at - holders + 1, blocked_for(&queue, at));
            self.book().look_again(name, Look { seen, ..look });
        }
    }

    fn look_failed(&self, due: &[Due], failure: &Failure) {
        if let Failure::Refused(error) = failure
            && is_final(self.dialect(), error)
        {
            trace::renewal_failed(self.dialect().store(), error);
        }
        let (at, mut book) = (CLOCK.now() + jitter(PAUSE), self.book());
        for (name, look, _) in due {
            book.look_again(name, Look { at, ..*look });
        }
    }
}

/// Looks until the session is gone.
pub(crate) async fn run(session: Weak<Session>, earlier: Arc<Notify>) {
    loop {
        let Some(due) = session.upgrade().map(|session| session.book().next_look()) else { return };
        until(due, &earlier).await;
        let Some(session) = session.upgrade() else { return };
        if session.book().next_look() <= CLOCK.now() + TOGETHER {
            session.look().await;
        }
    }
}
