//! Renewal: one request keeps all locks and all waiting attempts of a client alive.

use std::sync::Arc;

use lock_core::{Clock, Instant, trace};

use super::{
    Session,
    attempt::{Attempt, Role},
};
use crate::{
    error::{self, STORE},
    wire::{
        answer::{self, Seen},
        failure::Failure,
        script,
    },
};

/// The most that one request renews, counted in locks that are held alone. The server does nothing
/// else meanwhile, for one to three milliseconds.
const CHUNK: usize = 1000;
/// Every other attempt counts as this many of these.
const OTHER: usize = 5;

impl Session {
    /// Makes an attempt ask before its group is due.
    pub(crate) fn ask(&self, attempt: &Attempt, at: Instant) {
        let mut book = self.book();
        let before = book.next_due();
        book.ask(attempt, at);
        if at < before {
            self.due.notify_one();
        }
    }

    pub(super) async fn renew_due(&self) {
        let now = Clock::Boot.now();
        let attempts = self.book().take_due(now);
        let (mut alone, mut others, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for attempt in &attempts {
            match attempt.role(now) {
                Some(Role::Holds) => alone.push(attempt),
                Some(Role::Shares) => others.push(attempt),
                Some(Role::Waits) => waiting.push(attempt),
                None => {}
            }
        }
        let held = alone.len() + others.len();
        others.append(&mut waiting);
        let (mut alone, mut others) = (&alone[..], &others[..]);
        while !alone.is_empty() || !others.is_empty() {
            let (now, later) = alone.split_at(alone.len().min(CHUNK));
            let room = (CHUNK - now.len()) / OTHER;
            let (beside, rest) = others.split_at(others.len().min(room));
            (alone, others) = (later, rest);
            if let Err(failure) = self.renew_chunk(now, beside).await {
                return self.renewal_failed(&failure);
            }
        }
        if held > 0 {
            trace::renewed(STORE, held);
        }
    }

    async fn renew_chunk(
        &self,
        alone: &[&Arc<Attempt>],
        others: &[&Arc<Attempt>],
    ) -> Result<(), Failure> {
        let limit = alone.iter().chain(others).map(|attempt| attempt.patience()).min();
        let sent = Clock::Boot.now();
        let members: Vec<_> = alone.iter().map(|attempt| attempt.member()).collect();
        let turns: Vec<_> = others.iter().map(|attempt| attempt.turn()).collect();
        let command = script::renew(&members, &turns);
        let (answer, short) = self.call_and_count(&command, limit.unwrap_or_default()).await?;
        let Some((renewed, seen)) = answer::renewed(&answer, alone.len()) else { return Ok(()) };
        // Without enough replicas, bad news counts, and good news does not.
        for (attempt, mine) in alone.iter().zip(renewed) {
            if short.is_none() || !mine {
                attempt.renewed_alone(sent, mine);
            }
        }
        for (attempt, seen) in others.iter().zip(seen) {
            if short.is_some() && matches!(seen, Seen::Holds(_)) {
                continue;
            }
            if let Some(at) = attempt.seen(sent, seen) {
                self.book().ask(attempt, at);
            }
        }
        let waits = |attempt: &&Arc<Attempt>| attempt.is_waiting();
        match short {
            Some(had) if !alone.is_empty() || !others.iter().all(waits) => Err(Failure::Short(had)),
            _ => Ok(()),
        }
    }

    fn renewal_failed(&self, failure: &Failure) {
        let why: &dyn std::fmt::Display = match failure {
            Failure::Closed => return,
            Failure::Short(had) => &error::Short { had: *had, wanted: self.wait_replicas },
            Failure::Down(error) => error,
            Failure::Lost(error) | Failure::Refused(error) => error,
        };
        trace::renewal_failed(STORE, why);
        let now = Clock::Boot.now();
        let mut book = self.book();
        book.attempts.try_soon(now);
        book.attempts.all().for_each(|attempt| attempt.expire_wait(now));
    }
}
