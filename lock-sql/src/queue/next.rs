//! Which waiter is next: looks at the queues of waiting attempts, with one query for up to 500 that
//! are due.
//!
//! SQL reads a queue in its order (`ORDER BY name, token`, in `wire/script/read.rs`), up to this
//! client's first waiters, and [`lock_core::queue`] decides. Where clients are pushed,
//! `wire/script/wake.rs` says which of them look.

use std::{collections::HashMap, time::Duration};

use lock_core::{
    Clock, Instant, Kind,
    deadline::jitter,
    keep::{backoff::Backoff, poison::lock},
    queue::admitted,
};

use super::schedule::{LIMIT, Look, Why, blocked_for, next_look};
use crate::{
    error::is_final,
    layout::{dialect::Dialect, row::Row},
    session::{Session, book::Looked},
    wire::{failure::Failure, turns::Rank},
};

/// Pauses after looks that failed: each may be a new connection that the server refuses.
pub(crate) const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
/// Longest time without a look: a look that could be spared is made after it.
const LONGEST_SPARE: Duration = Duration::from_secs(1);

impl Session {
    /// Looks at queues that are due: see [`start_looks`](crate::session::book::Book::start_looks).
    pub(crate) async fn look(&self) {
        let mut queues = self.book().start_looks(Clock::Boot.now());
        let seen = self.spare(&mut queues).await;
        if queues.is_empty() {
            return;
        }
        let names: Vec<_> = queues.iter().map(|queue| (&queue.name, queue.last)).collect();
        let bury = queues.iter().any(|queue| queue.look.why == Why::Expiry);
        let look = self.script().look(&names, bury);
        match self.database.run(Rank::HandOver, &look, LIMIT).await {
            Ok((_, rows)) => {
                *lock(&self.look_pauses) = PAUSES;
                queues.iter().for_each(|queue| self.looked(queue, &rows, seen));
                if bury {
                    // Other clients may have waited for the expired entries, too.
                    names.iter().for_each(|(name, _)| self.tell_neighbours(name));
                }
            }
            Err(failure) => self.look_failed(&queues, &failure),
        }
    }

    /// Takes out the looks that can be spared: nothing has changed in the database since the last
    /// one. Returns the version of the database that the other looks will see; they may see a later
    /// one.
    async fn spare(&self, queues: &mut Vec<Looked>) -> Option<(u64, Instant)> {
        if self.dialect() != Dialect::Sqlite || queues.is_empty() {
            return None;
        }
        let now = Clock::Boot.now();
        let answer = self.database.run(Rank::HandOver, &self.script().version(), LIMIT).await.ok();
        let version = answer.and_then(|(_, rows)| rows.number(0))?;
        let is_same = |seen: (u64, Instant)| seen.0 == version && now.since(seen.1) < LONGEST_SPARE;
        let is_spared = |Looked { look, .. }: &mut Looked| {
            look.why == Why::Pace && look.seen.is_some_and(is_same)
        };
        let mut book = self.book();
        for Looked { name, look, .. } in queues.extract_if(.., is_spared) {
            book.look_again(&name, look.after(now));
        }
        Some((version, now))
    }

    fn looked(&self, looked: &Looked, rows: &[Row], seen: Option<(u64, Instant)>) {
        let Looked { name, look, first, .. } = looked;
        // They are sorted by name, byte by byte.
        let rows = &rows[rows.partition_point(|row| *row.name < *name.as_str().as_bytes())..];
        let queue = &rows[..rows.partition_point(|row| *row.name == *name.as_str().as_bytes())];
        let places: HashMap<_, _> =
            queue.iter().enumerate().map(|(at, row)| (row.attempt, at)).collect();
        let holders = admitted(queue.iter().map(|row| row.kind));
        let mut waits = None;
        for attempt in first {
            match places.get(&attempt.id) {
                Some(at) if queue[*at].left.is_zero() => attempt.gone(),
                Some(at) if *at < holders => attempt.admitted(),
                Some(at) => waits = waits.or(Some(*at)),
                None => attempt.gone(),
            }
        }
        let excludes = first.iter().any(|it| it.kind == Kind::Exclusive && !it.is_over());
        let mut book = self.book();
        let look = match waits {
            Some(at) => {
                let head = book.head(name, &queue[..holders]);
                next_look(self.paced_as(), at - holders + 1, blocked_for(queue, at), head)
            }
            // Others of this client may wait behind it. They are rung when it leaves, and nobody
            // rings when it expires.
            None if excludes => next_look(self.paced_as(), 1, blocked_for(queue, holders), None),
            None => {
                let most = look.most.saturating_mul(2);
                Look { at: Clock::Boot.now(), why: Why::Pace, most, ..*look }
            }
        };
        book.look_again(name, Look { seen: waits.and(seen), ..look });
    }

    fn look_failed(&self, queues: &[Looked], failure: &Failure) {
        if let Failure::Refused(error) = failure
            && is_final(self.dialect(), error)
        {
            self.reach().look_failed(self.dialect().store(), error);
        }
        let pause = lock(&self.look_pauses).take();
        let (at, mut book) = (Clock::Boot.now() + jitter(pause), self.book());
        book.paused = at;
        for Looked { name, look, .. } in queues {
            book.look_again(name, Look { at, ..*look });
        }
    }
}
