//! Renewal, as often as `lock_core::keep::renewal` says: one task of the client renews all locks and
//! places.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Clock,
    keep::{due, poison::lock},
};

use super::Session;

/// Starts the renewal of the session's attempts.
pub(crate) fn start(session: &Arc<Session>) {
    tokio::spawn(due::run(
        Clock::Tokio,
        Arc::downgrade(session),
        session.changed.clone(),
        Duration::ZERO,
        |session: &Session| lock(&session.attempts).next_due(),
        |session: Arc<Session>| async move { session.renew_due().await },
    ));
}

impl Session {
    async fn renew_due(&self) {
        let sent = Clock::Tokio.now();
        let mut due = lock(&self.attempts).reschedule_due(sent);
        due.retain(|attempt| attempt.is_renewed(sent));
        let patience = due.iter().map(|attempt| attempt.period).min();
        let Some(patience) = patience.filter(|_| !self.client.network.now().renewal_paused) else {
            return;
        };
        let answer = self.request("renew", patience.max(Duration::from_millis(1)), |store| {
            due.iter().map(|one| store.renew(&one.name, one.id)).collect::<Vec<_>>()
        });
        match answer.await {
            Err(error) => {
                self.reach.renewal_failed("memory", &error);
                // Renewals that became due while there was no answer are skipped, too: the session
                // may end.
                drop(lock(&self.attempts).reschedule_due(Clock::Tokio.now()));
            }
            Ok(renewed) => {
                let mut held = 0;
                for (attempt, alive) in due.iter().zip(renewed) {
                    match alive {
                        true => {
                            attempt.renewed(&self.client.store, sent);
                            held += usize::from(attempt.is_held());
                        }
                        false => self.gone(attempt),
                    }
                }
                self.reach.renewed("memory", held);
            }
        }
    }
}
