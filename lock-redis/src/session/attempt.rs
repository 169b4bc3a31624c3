//! One attempt on this store.

use std::{
    ops::Deref,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::{
    config::Mode,
    layout::{key::Key, ticket::Ticket},
    wire::{
        answer::AttemptState,
        call,
        script::{self, Member, Renewal},
    },
};
use lock_core::{
    Clock, Instant, Kind, LossReason, Request, Term, Validity,
    keep::{
        self,
        attempt::{End, Progress},
    },
    this_process,
    validity::safe_until,
};

/// After this time a renewal also keeps the name's last token for another day.
const FENCE_PERIOD: Duration = Duration::from_secs(8 * 3600);

/// The stage of an attempt. A push may be seen before the answer that came before it, so a pushed
/// token is kept while the first request is on its way.
type Stage = keep::attempt::Stage<Option<u64>, Queued, Hold>;

/// An attempt of this client: it asks, waits, or holds the lock.
#[derive(Debug)]
pub(crate) struct Attempt {
    progress: Progress<Option<u64>, Queued, Hold>,
    pub(crate) ticket: Ticket,
    pub(crate) key: Key,
    /// The holder's description, if it has one of its own, other than its client's.
    pub(crate) description: Option<Arc<str>>,
    /// Whether it has a value.
    pub(crate) leads: bool,
    kind: Kind,
    /// Number of renewals in which it took part, except as the only holder.
    renewals: AtomicU32,
    /// Since when its server may have lost it, and the reason if it has: another one has taken over,
    /// or it was connected again. It is looked for, however young it is.
    missing: Mutex<Option<(Instant, LossReason)>>,
}

impl Deref for Attempt {
    type Target = Progress<Option<u64>, Queued, Hold>;

    fn deref(&self) -> &Self::Target {
        &self.progress
    }
}

/// The server's last answer about an attempt that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// The name's last token at that time.
    fence: u64,
    /// When to ask again, if that is before the next renewal.
    ask: Option<Instant>,
    polls: Polls,
}

/// Number of polls of a foreign holder's key.
#[derive(Clone, Copy, Debug, Default)]
struct Polls {
    holder: Option<u64>,
    count: u32,
}

/// State of a lock that is held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hold {
    /// When the last request was sent that kept the name's last token for a day: the grant, or a
    /// renewal.
    fenced: Instant,
    /// The grant's token, and since when it has this one; `None` while a conversion may change it.
    token: Option<(Instant, u64)>,
    /// Since when this attempt is the only holder; `None` while others may hold the lock too. It
    /// becomes `None` before others can hold it on the server, and an instant only after they
    /// cannot.
    alone: Option<Instant>,
    /// When the confirmed request before the last one was sent, if there was one.
    earlier: Option<Instant>,
    /// Whether another server may be taking over. Until that is settled, a confirmed request counts
    /// only when a later one is confirmed, too.
    doubted: bool,
    /// Requests that were sent before this may have been answered by a server that was left, or one
    /// that has lost their effect by a restart.
    counts_from: Instant,
}

/// Which part of the renewal request carries the attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// It holds alone.
    Holds,
    /// It holds beside others, or may do so, or more than the lock's key must be kept: a value, or
    /// the name's last token.
    Shares,
    Waits,
}

impl Attempt {
    /// `period`: how often it is renewed.
    pub(crate) fn new(
        mode: Mode,
        key: Key,
        ticket: Ticket,
        request: &Request,
        period: Duration,
    ) -> Arc<Self> {
        // The simple mode writes no description: it would need a key beside the lock's.
        let is_described = mode == Mode::Queue && request.holder != this_process();
        Arc::new(Self {
            progress: Progress::new(ticket.attempt, request, period, None),
            ticket,
            key,
            description: is_described.then(|| request.holder.clone()),
            leads: request.value.is_some() && mode == Mode::Queue,
            kind: request.kind,
            renewals: AtomicU32::new(0),
            missing: Mutex::default(),
        })
    }

    pub(crate) fn member(&self) -> Member<'_> {
        Member { key: &self.key, ticket: &self.ticket, ttl: self.ttl }
    }

    /// Returns the attempt's part of one more renewal. A fixed term is only checked: its key gets
    /// the time that the term has left, unless it has more.
    pub(super) fn renewal(&self) -> Renewal<'_> {
        let least = self.look(|stage| match stage {
            Stage::Held { sent, .. } if self.term == Term::Fixed => {
                // With none, the check would delete the key.
                (*sent + self.ttl).since(Clock::Boot.now()).max(Duration::from_millis(1))
            }
            _ => self.ttl,
        });
        Renewal { least, ..self.renewal_by_hand() }
    }

    /// Same as [`renewal`](Self::renewal), if the holder asks for it: a fixed term gets a whole TTL
    /// again.
    pub(super) fn renewal_by_hand(&self) -> Renewal<'_> {
        let before = self.renewals.fetch_add(1, Ordering::Relaxed);
        Renewal { member: self.member(), least: self.ttl, before }
    }

    /// Takes note that the holder's own renewal, sent at this instant, has found the lock. A fixed
    /// term starts anew, unless the client was connected again since: a server that took over, or
    /// restarted, may lack the renewal, and a check there may have asked for the old term's time.
    pub(super) fn renewed_by_hand(&self, renewed: Instant, token: u64) {
        self.change(|stage| match stage {
            Stage::Held { sent, note, .. }
                if self.term == Term::Fixed
                    && renewed > *sent
                    && (renewed >= note.counts_from || note.doubted && !self.is_missing()) =>
            {
                note.earlier = Some(std::mem::replace(sent, renewed));
            }
            _ => {}
        });
        self.holds(renewed, token);
    }

    /// Returns the request that removes the attempt from the server: its lock, or its place.
    pub(crate) fn release(&self) -> call::Request<'_> {
        script::release(&self.key, &self.ticket, self.description.is_some(), self.leads)
    }

    /// Notes whether others may hold the lock too from now on.
    pub(crate) fn share(&self, shares: bool) {
        self.note(|hold| hold.alone = (!shares).then(|| Clock::Boot.now()));
    }

    /// Takes note of a renewal's answer for an attempt that waits, or does not hold alone. Returns
    /// when to ask again, if that is before the next renewal.
    pub(crate) fn answered(&self, sent: Instant, state: AttemptState) -> Option<Instant> {
        match state {
            AttemptState::Waits(answer) => return self.waits(sent, answer),
            AttemptState::Holds(token) => self.holds(sent, token),
            AttemptState::Gone => self.gone(),
            AttemptState::Failed => {}
        }
        None
    }

    /// Takes note that a request, sent at `renewed`, has found the lock with this token.
    fn holds(&self, renewed: Instant, token: u64) {
        self.change(|stage| match stage {
            Stage::Waiting { .. } => *stage = Stage::Granted { sent: renewed, token },
            Stage::Granted { token: other, .. } if token != *other => {}
            // The server that took over has granted it anew, and perhaps others in between.
            Stage::Held { note, .. }
                if note.token.is_some_and(|(since, known)| known != token && since <= renewed)
                    && self.is_missing() =>
            {
                self.lose(stage);
            }
            _ => {
                if let Stage::Held { note, .. } = stage {
                    note.fenced = renewed.max(note.fenced);
                }
                self.extend(stage, renewed);
            }
        });
    }

    /// Lets an attempt count for a TTL from `renewed` on, when the request was sent that has found
    /// it; while its server is doubted, from the request before.
    fn extend(&self, stage: &mut Stage, renewed: Instant) {
        let mut renewed = renewed;
        if let Stage::Held { sent, validity, note } = stage {
            if renewed < note.counts_from {
                return;
            }
            if renewed > *sent {
                note.earlier = Some(*sent);
            }
            if self.term == Term::Fixed {
                renewed = *sent;
            }
            if note.doubted {
                *sent = renewed.max(*sent);
                if let Some(earlier) = note.earlier {
                    validity.extend(safe_until(earlier, self.ttl));
                }
                return;
            }
        }
        self.found();
        stage.confirm(renewed, self.ttl);
    }

    /// Takes note of a renewal's answer for a lock that was held alone when the renewal was sent.
    pub(crate) fn renewed_alone(&self, renewed: Instant, mine: bool) {
        if mine {
            return self.change(|stage| self.extend(stage, renewed));
        }
        self.change(|stage| match stage {
            // After a conversion meanwhile it may still be held. The next renewal shows that.
            Stage::Held { note, .. } if note.alone.is_some_and(|since| since <= renewed) => {
                self.lose(stage);
            }
            _ => {}
        });
    }

    /// Takes note that the server does not have it any more.
    pub(crate) fn gone(&self) {
        self.change(|stage| self.lose(stage));
    }

    /// Takes note that it was revoked: that is no expiry and no failover, though its server may have
    /// taken over since a request has found it.
    pub(crate) fn revoked(&self) {
        self.progress.revoked(Clock::Boot.now());
    }

    /// Returns the attempt's role in a renewal now; `None` if it takes no part.
    pub(crate) fn role(&self, now: Instant) -> Option<Role> {
        let missing = self.is_missing();
        if !missing && !self.is_doubted_grant() && !self.is_renewed(now) {
            return None;
        }
        self.look(|stage| match stage {
            Stage::Waiting { .. } => Some(Role::Waits),
            Stage::Held { validity, .. } if validity.has_ended() => None,
            Stage::Held { note, .. } => {
                let fence = now.since(note.fenced) >= FENCE_PERIOD || self.term == Term::Fixed;
                // A server that took over tells the token, too.
                let alone = !self.leads && !fence && !missing && note.alone.is_some();
                Some(if alone { Role::Holds } else { Role::Shares })
            }
            _ => None,
        })
    }

    /// Whether a request that was sent at this instant or later has found that it holds.
    pub(crate) fn is_confirmed_since(&self, instant: Instant) -> bool {
        self.look(|stage| match stage {
            Stage::Held { sent, validity, note } => {
                validity.loss().is_none() && (*sent).max(note.fenced) >= instant
            }
            _ => false,
        })
    }

    /// Takes note of a grant. From now on the lock is held and renewed.
    pub(crate) fn hold(&self, sent: Instant, token: u64) -> Result<Validity, End> {
        let alone = (self.kind == Kind::Exclusive).then(Instant::default);
        let hold = Hold { fenced: sent, token: Some((sent, token)), alone, ..Hold::default() };
        self.progress.hold(sent, hold)
    }

    /// Notes the grant's token; `None` while a conversion may change it.
    pub(crate) fn set_token(&self, token: Option<u64>) {
        self.note(|hold| hold.token = token.map(|token| (Clock::Boot.now(), token)));
    }

    /// Notes something about the lock, if it is held.
    fn note(&self, change: impl FnOnce(&mut Hold)) {
        self.change(|stage| {
            if let Stage::Held { note, .. } = stage {
                change(note);
            }
        });
    }
}

mod failover;
#[cfg(test)]
mod tests;
mod waiting;
