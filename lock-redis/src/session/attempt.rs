//! One attempt from its first request to its end: what is known of it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Instant, Kind, LockName, LossReason, Request, Result, Term, Validity,
    deadline::{jitter, safe_until},
    this_process,
};
use redis::Cmd;
use tokio::sync::Notify;

use crate::{
    config::Mode,
    error,
    layout::{key::Key, ticket::Ticket},
    wire::{
        answer::{Seen, Waits},
        clock::CLOCK,
        script::{self, Member, Turn},
    },
};

/// The head asks a foreign holder's key again after this long, then less and less often.
const FIRST_ASK: Duration = Duration::from_millis(50);
const LONGEST_ASK: Duration = Duration::from_secs(1);
/// How much later than the holder's key expires the head asks, and the others: the head goes first.
const HEAD_SLACK: Duration = Duration::from_millis(2);
const OTHERS_SLACK: Duration = Duration::from_millis(400);

/// After this long a renewal keeps the name's last token for another day, too.
const FENCE_PERIOD: Duration = Duration::from_secs(8 * 3600);

/// An attempt that this client makes, waits with, or holds a lock by.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) ticket: Ticket,
    pub(crate) key: Key,
    pub(crate) name: LockName,
    pub(crate) ttl: Duration,
    pub(crate) term: Term,
    /// How often it is renewed.
    pub(crate) period: Duration,
    /// Whether the holder says about itself something else than its client does.
    pub(crate) described: bool,
    /// Whether it has a value.
    pub(crate) leads: bool,
    /// Since when the attempt alone can hold the lock; `None` while others may hold it too. `None`
    /// before it is so on the server, and an instant after.
    alone: Mutex<Option<Instant>>,
    stage: Mutex<Stage>,
    moved: Notify,
    /// In how many renewals it took part other than by holding alone.
    turns: AtomicU32,
}

#[derive(Debug)]
enum Stage {
    /// Its first request is on its way. A push may be seen before the answer that came before it.
    Asking { pushed: Option<u64> },
    /// It waits, and said so last by a request that was sent at `sent`.
    Waiting { sent: Instant, fence: u64, ask: Option<Instant>, polls: Polls },
    /// It was granted; nobody has taken note yet. The grant is not older than `sent`.
    Granted { sent: Instant, token: u64 },
    /// It holds, as confirmed by a request that was sent at `sent`. The name's last token was kept
    /// for another day by the grant, or by a renewal since, at `fenced`.
    Held { sent: Instant, fenced: Instant, validity: Validity },
    /// It is over.
    Over(End),
}

/// How often a foreign holder's key was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Polls {
    holder: Option<u64>,
    count: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The server does not have it any more.
    Gone,
    Unreachable,
    Closed,
}

/// Which part of the renewal request carries the attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// It holds alone.
    Holds,
    /// It holds beside others, or may do so, or there is more to keep than the lock's key: a value,
    /// or the name's last token.
    Shares,
    Waits,
}

impl Attempt {
    pub(crate) fn new(mode: Mode, key: Key, ticket: Ticket, request: &Request) -> Arc<Self> {
        Arc::new(Self {
            ticket,
            key,
            name: request.name.clone(),
            ttl: request.ttl,
            term: request.term,
            period: match mode {
                Mode::Queue => request.ttl / 3,
                // Nobody tells the client that somebody has revoked its lock: it must ask.
                Mode::Simple => request.ttl / 8,
            },
            leads: request.value.is_some() && mode == Mode::Queue,
            alone: Mutex::new((request.kind == Kind::Exclusive).then(Instant::default)),
            described: mode == Mode::Queue && request.holder != this_process(),
            stage: Mutex::new(Stage::Asking { pushed: None }),
            moved: Notify::new(),
            turns: AtomicU32::new(0),
        })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // Nothing panics while it holds this.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn member(&self) -> Member<'_> {
        (&self.key, &self.ticket, self.ttl)
    }

    /// As a member of one more renewal.
    pub(super) fn turn(&self) -> Turn<'_> {
        (self.member(), self.turns.fetch_add(1, Ordering::Relaxed))
    }

    /// How long one request about this attempt waits for its answer.
    pub(crate) fn patience(&self) -> Duration {
        (self.ttl / 3).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// The command that removes whatever the attempt has on the server.
    pub(crate) fn release(&self, mode: Mode) -> Cmd {
        match mode {
            Mode::Queue if self.leads => script::resign(&self.key, &self.ticket),
            Mode::Queue => script::release(&self.key, &self.ticket, self.described),
            Mode::Simple => script::simple_release([(&self.key, &self.ticket)].into_iter()),
        }
    }

    /// Whether others hold the lock too from now on, or may do so.
    pub(crate) fn share(&self, shares: bool) {
        *self.alone() = (!shares).then(|| CLOCK.now());
    }

    fn alone(&self) -> MutexGuard<'_, Option<Instant>> {
        // Nothing panics while it holds this.
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A push says that the attempt was granted. It may be late, and the attempt may have lost that
    /// grant and queued up again; then it is no newer than what the server said since.
    pub(crate) fn pushed(&self, token: u64) {
        let mut stage = self.stage();
        match &mut *stage {
            Stage::Asking { pushed } => *pushed = (*pushed).max(Some(token)),
            Stage::Waiting { sent, fence, .. } if token > *fence => {
                *stage = Stage::Granted { sent: *sent, token };
                self.moved.notify_one();
            }
            _ => {}
        }
    }

    /// The server says that the attempt waits. Answers when to ask again, if that is before the
    /// next renewal.
    pub(crate) fn waits(&self, sent: Instant, said: Waits) -> Option<Instant> {
        let mut stage = self.stage();
        let polls = match &*stage {
            Stage::Asking { pushed: Some(token) } if *token > said.fence => {
                *stage = Stage::Granted { sent, token: *token };
                self.moved.notify_one();
                return None;
            }
            Stage::Asking { .. } => Polls::default(),
            Stage::Waiting { sent: before, polls, .. } if sent >= *before => *polls,
            _ => return None,
        };
        let (delay, polls) = self.next_ask(said, polls);
        let ask = delay.map(|delay| CLOCK.now() + delay);
        *stage = Stage::Waiting { sent, fence: said.fence, ask, polls };
        ask
    }

    /// Nobody tells when a holder dies, or when a foreign one releases.
    fn next_ask(&self, said: Waits, polls: Polls) -> (Option<Duration>, Polls) {
        let head = said.place == Some(1);
        let slack = if head { HEAD_SLACK } else { jitter(OTHERS_SLACK) };
        let expiry = said.pttl.map(|pttl| pttl + slack);
        let holder = said.foreign.filter(|_| head);
        // Another foreign holder may release as soon as the first one might have.
        let count = if holder == polls.holder { polls.count } else { 0 };
        let pause = (FIRST_ASK * 2u32.saturating_pow(count)).min(LONGEST_ASK);
        let poll = holder.map(|_| jitter(pause));
        let delay = [expiry, poll].into_iter().flatten().min();
        // The renewal comes by then anyway.
        (delay.filter(|delay| *delay < self.period), Polls { holder, count: (count + 1).min(16) })
    }

    /// A renewal's answer for an attempt that waits, or does not hold alone.
    pub(crate) fn seen(&self, sent: Instant, seen: Seen) -> Option<Instant> {
        match seen {
            Seen::Waits(said) => self.waits(sent, said),
            Seen::Holds(token) => {
                self.granted(sent, token);
                None
            }
            Seen::Gone => {
                self.gone();
                None
            }
        }
    }

    fn granted(&self, confirmed: Instant, token: u64) {
        let mut stage = self.stage();
        match &mut *stage {
            Stage::Waiting { .. } => {
                *stage = Stage::Granted { sent: confirmed, token };
                self.moved.notify_one();
            }
            Stage::Granted { sent, token: same } if token == *same => {
                *sent = confirmed.max(*sent);
            }
            Stage::Held { sent, fenced, validity } => {
                *sent = confirmed.max(*sent);
                *fenced = confirmed.max(*fenced);
                validity.extend(safe_until(confirmed, self.ttl));
            }
            _ => {}
        }
    }

    /// The server does not have the attempt any more: it was revoked, or its keys are gone.
    pub(crate) fn gone(&self) {
        let mut stage = self.stage();
        match &*stage {
            Stage::Held { validity, .. } => drop(validity.lose(LossReason::EntryGone)),
            Stage::Over(_) => {}
            _ => {
                *stage = Stage::Over(End::Gone);
                self.moved.notify_one();
            }
        }
    }

    /// A renewal's answer for a lock that was held alone when it was asked for.
    pub(crate) fn renewed(&self, confirmed: Instant, mine: bool) {
        let mut stage = self.stage();
        if let Stage::Held { sent, validity, .. } = &mut *stage {
            if mine {
                *sent = confirmed.max(*sent);
                validity.extend(safe_until(confirmed, self.ttl));
            } else if self.alone().is_some_and(|since| since <= confirmed) {
                // Converted meanwhile, it would be held all the same; the next renewal tells.
                validity.lose(LossReason::EntryGone);
            }
        }
    }

    /// Ends the wait if the server has not answered for a TTL: it has forgotten the attempt.
    pub(crate) fn expire_wait(&self, now: Instant) {
        let mut stage = self.stage();
        if matches!(&*stage, Stage::Waiting { sent, .. } if now.since(*sent) >= self.ttl) {
            *stage = Stage::Over(End::Unreachable);
            self.moved.notify_one();
        }
    }

    /// The client is closed: every lock that it holds is free, and nobody waits any more.
    pub(crate) fn closed(&self) {
        let stage = std::mem::replace(&mut *self.stage(), Stage::Over(End::Closed));
        if let Stage::Held { validity, .. } = stage {
            validity.lose(LossReason::Closed);
        }
        self.moved.notify_one();
    }

    /// How a renewal is to treat the attempt: `None` if it has nothing to say. A lock that was
    /// confirmed just now waits for the next renewal, so that short holds are never renewed.
    pub(crate) fn role(&self, now: Instant) -> Option<Role> {
        match &*self.stage() {
            Stage::Waiting { .. } => Some(Role::Waits),
            Stage::Held { sent, fenced, validity } => {
                let renew = self.term == Term::Renewed
                    && !validity.has_ended()
                    && now.since(*sent) >= self.period / 2;
                let fence = now.since(*fenced) >= FENCE_PERIOD;
                let alone = !self.leads && !fence && self.alone().is_some();
                renew.then_some(if alone { Role::Holds } else { Role::Shares })
            }
            _ => None,
        }
    }

    /// Whether the attempt still wants to ask at this instant.
    pub(crate) fn asks_at(&self, at: Instant) -> bool {
        matches!(&*self.stage(), Stage::Waiting { ask: Some(ask), .. } if *ask == at)
    }

    /// Whether the client was closed meanwhile.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&*self.stage(), Stage::Over(_))
    }

    /// Takes note of a grant: from now on it is held, and renewed.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](lock_core::Error::Closed) if the client was closed meanwhile,
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) if the grant was revoked.
    pub(crate) fn hold(&self, sent: Instant) -> Result<Validity> {
        let mut stage = self.stage();
        match &*stage {
            Stage::Over(End::Closed) => return Err(error::closed()),
            Stage::Over(_) => return Err(error::gone()),
            _ => {}
        }
        let validity = Validity::new(&self.name, safe_until(sent, self.ttl));
        *stage = Stage::Held { sent, fenced: sent, validity: validity.clone() };
        Ok(validity)
    }

    /// Waits until the attempt is granted or over.
    pub(crate) async fn decided(&self) -> Result<(Instant, u64), End> {
        loop {
            match &*self.stage() {
                Stage::Granted { sent, token } => return Ok((*sent, *token)),
                Stage::Over(end) => return Err(*end),
                _ => {}
            }
            // A permit is kept for a notification that comes before this.
            self.moved.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
