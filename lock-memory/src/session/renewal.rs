//! What keeps holds and places alive: one task of the client renews all of them.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Clock, Instant, LossReason, Term, trace};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{Record, Session, Stage};
use crate::defect::Defect;

/// Starts to renew what the session holds and waits for.
pub(crate) fn start(session: &Arc<Session>) {
    tokio::spawn(renew_all(Arc::downgrade(session), session.changed.clone()));
}

/// The watchdog: one for all locks and waits of the client.
async fn renew_all(session: Weak<Session>, changed: Arc<Notify>) {
    let mut pace = None;
    loop {
        match pace {
            Some(pace) => drop(tokio::time::timeout(pace, changed.notified()).await),
            None => changed.notified().await,
        }
        let Some(session) = session.upgrade() else { return };
        pace = session.renew_due().await;
    }
}

impl Session {
    /// Renews everything once; answers when to renew next.
    async fn renew_due(&self) -> Option<Duration> {
        let due: Vec<_> = self
            .records()
            .iter()
            .filter(|(_, record)| record.is_renewed())
            .map(|(attempt, record)| (*attempt, record.name.clone(), record.ttl))
            .collect();
        let pace = self.records().values().map(|record| record.ttl / 3).min();
        if due.is_empty() || self.client.network.now().renewal_paused {
            return pace;
        }
        let sent = Clock::Tokio.now();
        let patience = pace.unwrap_or_default().max(Duration::from_millis(1));
        let answer = self.request("renew", patience, |store| {
            due.iter().map(|(attempt, name, _)| store.renew(name, *attempt)).collect::<Vec<_>>()
        });
        match answer.await {
            Err(error) => trace::renewal_failed("memory", &error),
            Ok(renewed) => {
                for ((attempt, _, ttl), alive) in due.into_iter().zip(renewed) {
                    self.renewed(attempt, self.until(sent, ttl, Term::Renewed), alive);
                }
                trace::renewed("memory", self.records().len());
            }
        }
        pace
    }

    fn renewed(&self, attempt: Uuid, until: Instant, alive: bool) {
        let mut records = self.records();
        let Some(record) = records.get_mut(&attempt) else { return };
        match (&record.stage, alive) {
            (Stage::Holding { validity, .. }, true) => {
                validity.extend(until);
                record.renewals += u32::from(self.client.store.has(Defect::StopsRenewing));
            }
            (Stage::Waiting(_), true) => {}
            (_, false) => {
                if let Some(record) = records.remove(&attempt) {
                    record.end(LossReason::EntryGone);
                }
            }
        }
    }
}

impl Record {
    fn is_renewed(&self) -> bool {
        match &self.stage {
            Stage::Waiting(_) => self.known,
            Stage::Holding { validity, term } => {
                *term == Term::Renewed && !validity.has_ended() && self.renewals < 4
            }
        }
    }
}
