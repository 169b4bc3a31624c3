//! Renewal, as often as `lock_core::keep::renewal` says: one script keeps all locks and all waiting
//! attempts of a client alive. When another server has taken over, all are renewed and looked at
//! again.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    pin::pin,
    slice,
    sync::Arc,
    time::Duration,
};

use lock_core::{
    Clock, Instant, Request, Result,
    keep::{
        renewal::{RENEWALS_PER_TTL, RENEWALS_WITHOUT_PUSHES},
        wait::Waits,
    },
};

use super::{CHUNK, Session, attempt::Attempt};
use crate::{
    layout::dialect::Dialect,
    wire::{database::Reply, failure::Failure, script::Script, turns::Rank},
};

impl Waits for Session {
    type Attempt = Attempt;

    const CLOCK: Clock = Clock::Boot;

    fn store(&self) -> (&'static str, &'static str) {
        (self.dialect().store(), "the database")
    }

    async fn renew(&self, attempt: &Attempt) -> Result<Option<Instant>> {
        let renew = |script: Script| script.renew(&[(attempt.id, attempt.undated())], true);
        let Reply { sent, rows, .. } =
            self.insist(attempt.call("renew", Rank::Renew), renew).await?;
        Ok(rows.first().map(|row| {
            attempt.dated(row);
            sent
        }))
    }

    async fn withdraw(self: &Arc<Self>, attempt: &Arc<Attempt>, deadline: Instant) -> Result<()> {
        self.remove(slice::from_ref(attempt), false, deadline).await
    }

    fn clean_up(self: &Arc<Self>, attempt: &Arc<Attempt>) {
        self.remove_later(vec![attempt.clone()]);
    }
}

/// How often a lock is renewed within its TTL: 3 times on PostgreSQL, 8 times where nothing is
/// pushed.
fn renewals_per_ttl(dialect: Dialect) -> u32 {
    match dialect {
        Dialect::Postgres => RENEWALS_PER_TTL,
        Dialect::Sqlite | Dialect::MySql => RENEWALS_WITHOUT_PUSHES,
    }
}

impl Session {
    /// An attempt whose first request is about to be sent.
    pub(crate) fn attempt(&self, request: &Request, caller: &lock_core::Attempt) -> Arc<Attempt> {
        Attempt::new(request, request.ttl / renewals_per_ttl(self.paced_as()), caller)
    }

    /// Renews what is due. Held locks go first, those with short TTLs before the others, also when
    /// they fall due between the requests for a crowd. A round has failed if one of its requests
    /// has: others that are confirmed end no outage.
    pub(super) async fn renew_due(self: &Arc<Self>) {
        self.check_moved();
        let (mut due, mut held, mut asked, mut failed) = (BTreeMap::new(), 0, false, false);
        loop {
            let now = Clock::Boot.now();
            let more = self.book().attempts.reschedule_due(now);
            let place = |attempt: &Arc<Attempt>| (!attempt.is_held(), attempt.ttl, attempt.id);
            due.extend(more.into_iter().map(|attempt| (place(&attempt), attempt)));
            let mut attempts = Vec::new();
            while attempts.len() < CHUNK
                && let Some((_, attempt)) = due.pop_first()
            {
                if attempt.is_renewed(now) {
                    attempts.push(attempt);
                }
            }
            if attempts.is_empty() {
                break;
            }
            asked = true;
            let renewed = {
                let mut renewal = pin!(self.renew_chunk(&attempts));
                loop {
                    tokio::select! {
                        biased;
                        renewed = &mut renewal => break renewed,
                        // The former server may hang: its successor is asked at once.
                        () = self.renewal_bell.notified() => self.check_moved(),
                    }
                }
            };
            match renewed {
                Ok(renewed) => held += renewed,
                // The server answers: it may have refused this request alone.
                Err(failure @ Failure::Refused(_)) => {
                    self.renewal_failed(&failure, !failed);
                    failed = true;
                }
                Err(failure) => return self.renewal_failed(&failure, !failed),
            }
        }
        if asked && !failed {
            self.reach().renewed(self.dialect().store(), held);
        }
        if asked && self.book().sweeps(Clock::Boot.now()) {
            // If it fails, the next sweep will do. No renewal waits for it: it reads the whole
            // table, and on MySQL it waits for each row that another transaction has locked.
            let session = self.clone();
            tokio::spawn(async move {
                let limit = Duration::from_secs(1);
                let _ = session.database.run(Rank::Ask, &session.script().sweep(), limit).await;
            });
        }
    }

    /// Returns how many held locks were renewed.
    async fn renew_chunk(&self, attempts: &[Arc<Attempt>]) -> Result<usize, Failure> {
        let limit = attempts.iter().map(|attempt| attempt.patience()).min().unwrap_or_default();
        let own: Vec<_> = attempts.iter().map(|attempt| (attempt.id, attempt.undated())).collect();
        // The others must not wait for one that another transaction has locked.
        let renew = self.script().renew(&own, false);
        let (sent, rows) = self.database.run(Rank::Renew, &renew, limit).await?;
        let alive: HashMap<_, _> = rows.iter().map(|row| (row.attempt, row)).collect();
        let (mut held, mut locked) = (0, 0);
        for attempt in attempts {
            let Some(row) = alive.get(&attempt.id) else {
                self.gone(attempt);
                continue;
            };
            let confirmed = row.confirmed(sent, attempt.ttl);
            attempt.renewed(confirmed);
            attempt.dated(row);
            match sent.since(confirmed) < attempt.period / 2 {
                true => held += usize::from(attempt.is_held()),
                // Another transaction has locked the row.
                false => locked += 1,
            }
        }
        if locked > 0 {
            self.book().attempts.try_soon(Clock::Boot.now());
        }
        Ok(held)
    }

    /// Finds the held locks that were revoked while the client did not listen to pushes, or that a
    /// server that has taken over does not know.
    pub(crate) async fn check_held(&self) {
        let held = |attempt: &&Arc<Attempt>| attempt.is_held();
        let attempts: Vec<_> = self.book().attempts.all().filter(held).cloned().collect();
        for attempts in attempts.chunks(CHUNK) {
            let find = self.script().find(attempts.iter().map(|attempt| attempt.id));
            // If it fails, the next renewal finds out.
            let answer = self.database.run(Rank::HandOver, &find, Duration::from_secs(2)).await;
            let Ok((_, rows)) = answer else { return };
            let there: HashSet<_> = rows.iter().map(|row| row.attempt).collect();
            let gone = attempts.iter().filter(|attempt| !there.contains(&attempt.id));
            gone.for_each(|attempt| self.gone(attempt));
        }
    }

    /// Has the attempts renewed again soon. Reports the `first` failure of a round.
    fn renewal_failed(&self, failure: &Failure, first: bool) {
        if matches!(failure, Failure::Closed) {
            return;
        }
        if first {
            self.reach().renewal_failed(self.dialect().store(), failure.why());
        }
        let now = Clock::Boot.now();
        let mut book = self.book();
        book.attempts.try_soon(now);
        book.attempts.all().for_each(|attempt| attempt.expire_wait(now));
    }

    /// Notes that the database does not have an attempt any more.
    fn gone(&self, attempt: &Attempt) {
        if let Some(at) = self.database.moved_at() {
            attempt.lost_if_before(at);
        }
        attempt.gone();
    }

    /// Whether another server has taken over since the client last checked all that it holds.
    pub(super) fn has_moved(&self) -> bool {
        self.database.moved_at() > self.book().checked
    }

    /// If another server has taken over: has all attempts renewed now, as that one may not know the
    /// newest ones. Looks at all queues, since pushes of the former server got lost.
    fn check_moved(self: &Arc<Self>) {
        if !self.has_moved() {
            return;
        }
        let (moved, now) = (self.database.moved_at(), Clock::Boot.now());
        let mut book = self.book();
        book.checked = moved;
        book.attempts.all_due(now);
        drop(book);
        #[cfg(feature = "postgres")]
        if let Some(pushes) = self.database.pushes() {
            pushes.broken.notify_one();
        }
        // A renewal leaves out the newest locks, which are the likeliest to be missing.
        let session = self.clone();
        tokio::spawn(async move { session.check_held().await });
    }
}
