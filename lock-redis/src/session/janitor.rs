//! Removes attempts from the server: a few at once by a request each, many together.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use lock_core::{
    Clock, Instant, LossReason, Result,
    keep::{
        departures::{Departure, Departures, Removes, Sending},
        errors::shared,
        grant::Grants,
        wait::Waits,
    },
};
use tokio::sync::oneshot;

use super::{Session, attempt::Attempt, node::Node, retry::Effort};
use crate::{
    error::{self, STORE},
    wire::{
        answer::{self, AttemptState},
        script,
    },
};

/// The most leases that one request gives back. The server does nothing else meanwhile, for one to
/// three milliseconds.
const TOGETHER: usize = 200;

impl Waits for Session {
    type Attempt = Attempt;

    const CLOCK: Clock = Clock::Boot;

    fn store(&self) -> (&'static str, &'static str) {
        (STORE, "the server")
    }

    async fn renew(&self, attempt: &Attempt) -> Result<Option<Instant>> {
        Ok(self.renew_by_hand(attempt).await?.map(|(sent, _)| sent))
    }

    fn loss(&self, attempt: &Attempt) -> LossReason {
        attempt.loss()
    }

    /// Also removes the lock of an attempt that holds. The session forgets the attempt.
    async fn withdraw(self: &Arc<Self>, attempt: &Arc<Attempt>, deadline: Instant) -> Result<()> {
        self.forget(attempt);
        let node = self.routes.of(attempt.key.lock());
        if let Ok(_alone) = node.alone.try_acquire() {
            return self.remove_alone(attempt, deadline).await;
        }
        let (reply, answer) = oneshot::channel();
        let departure = Departure { what: attempt.clone(), count: 1, deadline, reply: Some(reply) };
        let leaving = Arc::new(Remover { session: self.clone(), node: node.clone() });
        if let Some(sending) = Sending::admit(&leaving, departure, 1) {
            tokio::spawn(sending.run_all());
        }
        // The task ends early only if its runtime ends.
        answer.await.unwrap_or_else(|_| Err(error::closed()))
    }

    fn clean_up(self: &Arc<Self>, attempt: &Arc<Attempt>) {
        let (session, attempt) = (self.clone(), attempt.clone());
        // By then it has expired.
        let deadline = Clock::Boot.now() + attempt.ttl * 2;
        tokio::spawn(async move { drop(session.withdraw(&attempt, deadline).await) });
    }
}

impl Session {
    /// Renews one attempt at once. Returns when the request was sent that has found it, and the
    /// token that it holds; `None` if the server does not have it, or has it in its queue. An
    /// attempt whose grant a failover has lost then waits again.
    pub(crate) async fn renew_by_hand(&self, attempt: &Attempt) -> Result<Option<(Instant, u64)>> {
        // Sent as a shared hold: whether it holds alone may change while the request is on its way.
        let deadline = Clock::Boot.now() + attempt.ttl / 2;
        let request = script::renew(&[], &[attempt.renewal_by_hand()], &attempt.key);
        let effort = Effort::urgent("renew", attempt.patience(), deadline);
        let outcome = self.insist(&request, effort, |value| answer::renewed(value, 0)).await;
        let (sent, (_, states)) = outcome.answer?;
        match states[..] {
            [AttemptState::Holds(token)] => {
                attempt.renewed_by_hand(sent, token);
                return Ok(Some((sent, token)));
            }
            [AttemptState::Waits(answer)] => self.ask(attempt, attempt.waits_again(sent, answer)),
            _ => {}
        }
        Ok(None)
    }

    async fn remove_alone(&self, attempt: &Attempt, deadline: Instant) -> Result<()> {
        let effort = Effort::urgent("release", attempt.patience(), deadline);
        let outcome = self.insist(&attempt.release(), effort, |_| Some(())).await;
        outcome.answer.map(drop)
    }
}

/// What leaves a node. One that does not answer holds up no release at the others.
#[derive(Debug)]
struct Remover {
    session: Arc<Session>,
    node: Arc<Node>,
}

impl Removes for Remover {
    type Leaving = Arc<Attempt>;

    fn departures(&self) -> &Departures<Arc<Attempt>> {
        &self.node.departures
    }

    async fn remove_next(self: &Arc<Self>) {
        let mut parts = BTreeMap::<u16, Vec<_>>::new();
        for one in self.node.departures.take(TOGETHER) {
            parts.entry(self.session.routes.part(&one.what.key)).or_default().push(one);
        }
        join_all(parts.into_values().map(|part| self.remove_part(part))).await;
    }
}

impl Remover {
    /// Removes attempts of one server, or of one slot.
    async fn remove_part(&self, leaving: Vec<Departure<Arc<Attempt>>>) {
        let Some(deadline) = leaving.iter().map(|one| one.deadline).min() else { return };
        let limit = leaving.iter().map(|one| one.what.patience()).min().unwrap_or_default();
        let Some(first) = leaving.first().map(|one| &one.what.key) else { return };
        let attempts = leaving.iter().map(|one| (one.what.member(), one.what.leads));
        let attempts: Vec<_> = attempts.collect();
        let request = script::release_all(&attempts, first);
        let read = |value: &_| answer::released(value, leaving.len());
        let effort = Effort::urgent("release", limit, deadline);
        let outcome = self.session.insist(&request, effort, read).await;
        match outcome.answer {
            Ok((_, released)) => {
                for (one, released) in leaving.into_iter().zip(released) {
                    let result = match released {
                        true => Ok(()),
                        // A request for this name alone shows the error.
                        false => self.session.remove_alone(&one.what, one.deadline).await,
                    };
                    one.tell(result);
                }
            }
            Err(why) => self.node.departures.failed(leaving, &shared(why), Clock::Boot.now()),
        }
    }
}
