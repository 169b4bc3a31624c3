//! Renewal, as often as `lock_core::keep::renewal` says: one request keeps all locks and all waiting
//! attempts of a client alive; one per slot in a cluster.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    Clock, Instant,
    keep::{
        renewal::{RENEWALS_PER_TTL, RENEWALS_WITHOUT_PUSHES},
        wait::Waits,
    },
};
use tokio::task;

use super::{
    Session,
    attempt::{Attempt, Role},
    node::Node,
    retry::Answer,
};
use crate::{
    config::Mode,
    error::{self, STORE},
    wire::{
        answer::{self, AttemptState},
        failure::Failure,
        script,
    },
};

/// How many attempts are put in line until other tasks have their turn. Locks that are due wait for
/// all of these turns.
const AT_ONCE: usize = 1000;

/// Returns the time between two renewals of an attempt: there are 3 in its TTL, and 8 with
/// `mode=simple`, as nothing is pushed there. `keep::attempts` of lock-core says when each
/// is due, also after a renewal that failed. `polling` of lock-core renews Redlock's.
pub(crate) fn period(mode: Mode, ttl: Duration) -> Duration {
    match mode {
        Mode::Queue => ttl / RENEWALS_PER_TTL,
        Mode::Simple => ttl / RENEWALS_WITHOUT_PUSHES,
    }
}

/// The attempts of one request: all of a server, or those of one slot of a cluster.
#[derive(Default)]
struct Part<'a> {
    alone: Vec<&'a Arc<Attempt>>,
    others: Vec<&'a Arc<Attempt>>,
}

/// Renews what is due at a node, until nothing is.
async fn renew_at(session: Arc<Session>, node: Arc<Node>) {
    while let Some(attempts) = node.to_renew.take(Clock::Boot.now()) {
        let (held, renewed) = session.renew_all(&attempts).await;
        let Err(failure) = renewed else {
            node.reach.renewed(STORE, held);
            continue;
        };
        // What one request lacks is not the fault of the others.
        if !matches!(failure, Failure::Refused(_) | Failure::Short(_)) {
            node.to_renew.clear();
        }
        session.renewal_failed(&node, &failure);
    }
}

impl Session {
    /// Makes an attempt ask at this instant, if one is given: before its group is due.
    pub(crate) fn ask(&self, attempt: &Attempt, at: Option<Instant>) {
        let Some(at) = at else { return };
        let mut book = self.book();
        let before = book.next_due();
        book.ask(attempt, at);
        if at < before {
            self.alarm.notify_one();
        }
    }

    /// Starts the renewal of what is due, at each node by itself.
    pub(super) async fn renew_due(self: &Arc<Self>) {
        let attempts = self.book().take_due(Clock::Boot.now());
        let mut idle = Vec::new();
        for (at, attempt) in attempts.into_iter().enumerate() {
            // There may be 10,000. The requests begin when all are there, or there would be more.
            if at % AT_ONCE == AT_ONCE - 1 {
                task::yield_now().await;
            }
            let node = self.routes.of(attempt.key.lock());
            if node.to_renew.add(attempt) {
                idle.push(node);
            }
        }
        idle.into_iter().for_each(|node| drop(tokio::spawn(renew_at(self.clone(), node))));
    }

    /// Renews attempts in one flight: by one request, or one for each slot. Returns how many held
    /// locks were renewed, and the first failure.
    async fn renew_all(
        self: &Arc<Self>,
        attempts: &[(Role, Arc<Attempt>)],
    ) -> (usize, Result<(), Failure>) {
        let sent = Clock::Boot.now();
        let mut parts = BTreeMap::<u16, Part<'_>>::new();
        for (role, attempt) in attempts {
            let part = parts.entry(self.routes.part(&attempt.key)).or_default();
            match role {
                Role::Holds => part.alone.push(attempt),
                Role::Shares | Role::Waits => part.others.push(attempt),
            }
        }
        let renewed = join_all(parts.into_values().map(|part| self.renew_part(part))).await;
        // What the server has confirmed, whatever was asked for.
        let held = attempts
            .iter()
            .filter(|(role, attempt)| *role != Role::Waits && attempt.is_confirmed_since(sent));
        (held.count(), renewed.into_iter().collect())
    }

    async fn renew_part(self: &Arc<Self>, part: Part<'_>) -> Result<(), Failure> {
        match self.renew_chunk(&part).await {
            Err(Failure::Refused(error)) if self.is_redirected(&error) => {
                self.renew_chunk(&part).await
            }
            Err(Failure::Refused(error)) if error::is_moving(&error) => {
                let each = part.alone.iter().chain(&part.others).map(|attempt| &***attempt);
                self.renew_each(each, &error).await
            }
            renewed => renewed,
        }
    }

    async fn renew_chunk(self: &Arc<Self>, part: &Part<'_>) -> Result<(), Failure> {
        let Part { alone, others } = part;
        let Some(first) = alone.first().or(others.first()) else { return Ok(()) };
        let limit = alone.iter().chain(others).map(|attempt| attempt.patience()).min();
        let sent = Clock::Boot.now();
        let holding: Vec<_> = alone.iter().map(|attempt| attempt.member()).collect();
        let renewals: Vec<_> = others.iter().map(|attempt| attempt.renewal()).collect();
        let request = script::renew(&holding, &renewals, &first.key);
        let Answer { value, short } = self.call(&request, None, limit.unwrap_or_default()).await?;
        let Some((renewed, states)) = answer::renewed(&value, alone.len()) else { return Ok(()) };
        // Without enough replicas, bad news counts, and good news does not.
        for (attempt, mine) in alone.iter().zip(renewed) {
            if short.is_none() || !mine {
                attempt.renewed_alone(sent, mine);
            }
        }
        let mut failed = None::<&Arc<Attempt>>;
        for (attempt, state) in others.iter().zip(states) {
            match state {
                AttemptState::Holds(_) if short.is_some() => {}
                AttemptState::Failed => failed = Some(attempt),
                state => self.answered(attempt, sent, state),
            }
        }
        if let Some(attempt) = failed {
            // A request for this name alone shows the error.
            let request = script::renew(&[], &[attempt.renewal()], &attempt.key);
            let sent = Clock::Boot.now();
            let answer = self.call(&request, None, attempt.patience()).await?;
            let value = answer.counted(&request)?;
            if let Some((_, states)) = answer::renewed(&value, 0) {
                states.into_iter().for_each(|state| self.answered(attempt, sent, state));
            }
        }
        let waits = |attempt: &&Arc<Attempt>| attempt.is_waiting();
        match short {
            Some(had) if !alone.is_empty() || !others.iter().all(waits) => Err(Failure::Short(had)),
            _ => Ok(()),
        }
    }

    fn answered(self: &Arc<Self>, attempt: &Arc<Attempt>, sent: Instant, state: AttemptState) {
        let knows_it = attempt.is_held() && state != AttemptState::Gone;
        self.ask(attempt, attempt.answered(sent, state));
        if knows_it && attempt.is_lost() {
            // The server that took over has it in its queue, or has granted it anew.
            self.clean_up(attempt);
        }
    }

    fn renewal_failed(&self, node: &Node, failure: &Failure) {
        let why: &dyn std::fmt::Display = match failure {
            // A node that was given up is no end of the session.
            Failure::Closed if self.book().attempts.is_closed() => return,
            Failure::Closed => &"the node has no slots any more",
            Failure::Short(had) => &error::Short { had: *had, wanted: self.config.wait_replicas },
            Failure::Down(error) | Failure::Lost(error) | Failure::Refused(error) => error,
        };
        node.reach.renewal_failed(STORE, why);
        let now = Clock::Boot.now();
        let mut book = self.book();
        book.attempts.try_soon(now);
        book.attempts.all().for_each(|attempt| attempt.expire_wait(now));
        drop(book);
        self.alarm.notify_one();
    }
}
