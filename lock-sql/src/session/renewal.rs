//! The renewal round: one script keeps all locks and all waiting attempts of a client alive.

use std::{
    collections::HashSet,
    fmt::Display,
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Instant, Result, trace};
use tokio::sync::Notify;

use super::{CHUNK, Session, attempt::Entry};
use crate::wire::{
    clock::{CLOCK, until},
    failure::Failure,
    script::Script,
    turns::Rank,
};

impl Session {
    /// Renews one entry now. Answers when the confirmed request was sent; `None` if it has expired.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn renew(&self, entry: &Entry) -> Result<Option<Instant>> {
        let deadline = CLOCK.now() + entry.ttl / 2;
        let renew = |script: Script| script.renew([entry.attempt]);
        let (sent, rows) =
            self.insist(("renew", Rank::Renew), renew, entry.patience(), deadline, None).await?;
        Ok((!rows.is_empty()).then_some(sent))
    }

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
        let script = self.script().renew(entries.iter().map(|entry| entry.attempt));
        let (sent, rows) = self.database.run(Rank::Renew, &script, limit).await?;
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
            let script = self.script().held(entries.iter().map(|entry| entry.attempt));
            // If it fails, the next renewal finds out.
            let Ok((_, rows)) =
                self.database.run(Rank::HandOver, &script, Duration::from_secs(2)).await
            else {
                return;
            };
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
