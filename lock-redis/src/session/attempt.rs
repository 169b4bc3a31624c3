//! One attempt, as this store has it.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Instant, Kind, Request, Validity,
    deadline::jitter,
    keep::{
        self,
        attempt::{End, Progress},
    },
    this_process,
};
use redis::Cmd;

use crate::{
    config::Mode,
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

/// Where an attempt stands: a push may be seen before the answer that came before it, so the token
/// of one is kept while its first request is on its way.
type Stage = keep::attempt::Stage<Option<u64>, Line, Hold>;

/// An attempt that this client makes, waits with, or holds a lock by.
#[derive(Debug)]
pub(crate) struct Attempt {
    progress: Progress<Option<u64>, Line, Hold>,
    pub(crate) ticket: Ticket,
    pub(crate) key: Key,
    /// Whether the holder says about itself something else than its client does.
    pub(crate) described: bool,
    /// Whether it has a value.
    pub(crate) leads: bool,
    kind: Kind,
    /// In how many renewals it took part other than by holding alone.
    turns: AtomicU32,
}

impl Deref for Attempt {
    type Target = Progress<Option<u64>, Line, Hold>;

    fn deref(&self) -> &Self::Target {
        &self.progress
    }
}

/// What the server said last of an attempt that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// The name's last token by then.
    fence: u64,
    /// When to ask again, if that is before the next renewal.
    ask: Option<Instant>,
    polls: Polls,
}

/// What is known of a lock that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// The name's last token was kept for another day by the grant, or by a renewal since, that was
    /// sent then.
    fenced: Instant,
    /// Since when this attempt alone can hold the lock; `None` while others may hold it too. `None`
    /// before it is so on the server, and an instant after.
    alone: Option<Instant>,
}

/// How often a foreign holder's key was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Polls {
    holder: Option<u64>,
    count: u32,
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
        let period = match mode {
            Mode::Queue => request.ttl / 3,
            // The server does not tell that a lock was revoked: the client must ask.
            Mode::Simple => request.ttl / 8,
        };
        Arc::new(Self {
            progress: Progress::new(ticket.attempt, request, period, None),
            ticket,
            key,
            described: mode == Mode::Queue && request.holder != this_process(),
            leads: request.value.is_some() && mode == Mode::Queue,
            kind: request.kind,
            turns: AtomicU32::new(0),
        })
    }

    pub(crate) fn member(&self) -> Member<'_> {
        (&self.key, &self.ticket, self.ttl)
    }

    /// As a member of one more renewal.
    pub(super) fn turn(&self) -> Turn<'_> {
        (self.member(), self.turns.fetch_add(1, Ordering::Relaxed))
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
        self.change(|stage| {
            if let Stage::Held { note, .. } = stage {
                note.alone = (!shares).then(|| CLOCK.now());
            }
        });
    }

    /// A push says that the attempt was granted. It may be late, and the attempt may have lost that
    /// grant and queued up again; then it is no newer than what the server said since.
    pub(crate) fn pushed(&self, token: u64) {
        self.change(|stage| match stage {
            Stage::Asking(pushed) => *pushed = (*pushed).max(Some(token)),
            Stage::Waiting { sent, note } if token > note.fence => {
                *stage = Stage::Granted { sent: *sent, token };
            }
            _ => {}
        });
    }

    /// The server says that the attempt waits. Answers when to ask again, if that is before the
    /// next renewal.
    pub(crate) fn waits(&self, sent: Instant, said: Waits) -> Option<Instant> {
        self.change(|stage| {
            let polls = match stage {
                Stage::Asking(Some(token)) if *token > said.fence => {
                    *stage = Stage::Granted { sent, token: *token };
                    return None;
                }
                Stage::Asking(_) => Polls::default(),
                Stage::Waiting { sent: before, note } if sent >= *before => note.polls,
                _ => return None,
            };
            let (delay, polls) = self.next_ask(said, polls);
            let ask = delay.map(|delay| CLOCK.now() + delay);
            *stage = Stage::Waiting { sent, note: Line { fence: said.fence, ask, polls } };
            ask
        })
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
        self.change(|stage| match stage {
            Stage::Waiting { .. } => *stage = Stage::Granted { sent: confirmed, token },
            Stage::Granted { token: other, .. } if token != *other => {}
            _ => {
                if let Stage::Held { note, .. } = stage {
                    note.fenced = confirmed.max(note.fenced);
                }
                stage.confirm(confirmed, self.ttl);
            }
        });
    }

    /// A renewal's answer for a lock that was held alone when it was asked for.
    pub(crate) fn renewed_alone(&self, confirmed: Instant, mine: bool) {
        if mine {
            return self.renewed(confirmed);
        }
        self.change(|stage| match stage {
            // Converted meanwhile, it would be held all the same; the next renewal tells.
            Stage::Held { note, .. } if note.alone.is_some_and(|since| since <= confirmed) => {
                stage.gone();
            }
            _ => {}
        });
    }

    /// How a renewal is to treat the attempt: `None` if it has nothing to say.
    pub(crate) fn role(&self, now: Instant) -> Option<Role> {
        if !self.is_renewed(now) {
            return None;
        }
        self.look(|stage| match stage {
            Stage::Waiting { .. } => Some(Role::Waits),
            Stage::Held { note, .. } => {
                let fence = now.since(note.fenced) >= FENCE_PERIOD;
                let alone = !self.leads && !fence && note.alone.is_some();
                Some(if alone { Role::Holds } else { Role::Shares })
            }
            _ => None,
        })
    }

    /// Whether the attempt still wants to ask at this instant.
    pub(crate) fn asks_at(&self, at: Instant) -> bool {
        self.look(|stage| matches!(stage, Stage::Waiting { note, .. } if note.ask == Some(at)))
    }

    /// Takes note of a grant: from now on it is held, and renewed.
    ///
    /// # Errors
    ///
    /// How it has ended meanwhile.
    pub(crate) fn hold(&self, sent: Instant) -> Result<Validity, End> {
        let alone = (self.kind == Kind::Exclusive).then(Instant::default);
        self.progress.hold(sent, Hold { fenced: sent, alone })
    }
}

#[cfg(test)]
mod tests;
