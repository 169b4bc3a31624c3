//! What this process knows of one attempt, from before the request for its node to its end.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, OnceLock},
};

use lock_core::{
    FencingToken, Instant, Kind, LossReason, Request, Term, Validity, keep::poison::lock,
    wall_clock,
};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    layout::note::{Became, Note},
    wire::watches::Event,
};

/// One attempt. The session keeps it from before the request for its node until the node's deletion
/// is confirmed. So a waiter behind it in the same process learns of its end without a request.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) id: Uuid,
    pub(crate) request: Request,
    /// The attempt whose grant this one takes over.
    upgraded: Option<Uuid>,
    since: u64,
    node: OnceLock<Node>,
    validity: OnceLock<Validity>,
    /// The watch on the node, once the server has confirmed it.
    watch: OnceLock<Event>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Whether lists may still show an earlier node of the same caller's attempt.
    again: bool,
    /// Whether a task has begun to look after the node.
    guarded: bool,
    /// Changed by a downgrade.
    kind: Kind,
    /// The end of a fixed term, which renewals of the session do not move.
    term_end: Instant,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// No node was requested.
    New,
    /// A node may exist.
    Asked,
    Held,
    /// It held the lock and gave it up.
    Passed,
    Gone,
}

/// The node that the server created for the attempt.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) sequence: i32,
    pub(crate) token: FencingToken,
}

impl Node {
    /// The last component of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// Whether this node was made right after another one of the same directory: no entry was made
    /// in between.
    ///
    /// Their numbers say so, unless the directory was deleted meanwhile and made anew: then the
    /// numbers began again. To come as far again takes a transaction for each entry, and the tokens,
    /// which count all transactions, show that there were not so many. A foreign transaction that
    /// makes many entries of one directory breaks this; distlock makes one entry of each.
    pub(crate) fn is_right_behind(&self, other: &Self) -> bool {
        let transactions = self.token.value().checked_sub(other.token.value());
        let made_before = u64::try_from(other.sequence).ok();
        other.sequence.checked_add(1) == Some(self.sequence)
            && transactions.zip(made_before).is_some_and(|(since, made)| since <= made)
    }
}

/// The events for which a waiter behind an attempt waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum News {
    /// It held the lock and gave it up, whether or not the node's deletion has reached the server
    /// yet. Everything that kept it from entering was gone before, and lower sequences never appear
    /// later.
    Passed,
    /// Its node is gone; whether it has ever held the lock is not known.
    Gone,
    Became(Became),
}

/// What an attempt may have left, until the [janitor](super::janitor) removes it.
#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    /// A node.
    Node(String),
    /// Nodes in a directory that attempts may have left, or that their unanswered creations may
    /// still make.
    Late(String, Late),
}

/// Until when nodes of these attempts may come: see [`Session::doubt`](super::Session::doubt).
pub(crate) type Late = HashMap<Uuid, Instant>;

impl Attempt {
    pub(crate) fn new(id: Uuid, request: Request) -> Self {
        let since = wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            id,
            upgraded: None,
            since: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            node: OnceLock::new(),
            validity: OnceLock::new(),
            watch: OnceLock::new(),
            state: Mutex::new(State {
                stage: Stage::New,
                again: false,
                guarded: false,
                kind: request.kind,
                term_end: Instant::NEVER,
            }),
            changed: Notify::new(),
            request,
        }
    }

    /// An attempt that takes a grant over. Other clients know the grant by its first attempt.
    pub(crate) fn upgrade(old: &Self, id: Uuid, request: Request) -> Self {
        let upgraded = Some(old.upgraded.unwrap_or(old.id));
        Self { upgraded, ..Self::new(id, request) }
    }

    /// The data of the node.
    pub(crate) fn note(&self, became: Option<Became>, value: Option<&[u8]>) -> Vec<u8> {
        let (holder, since, attempt) = (&*self.request.holder, self.since, self.upgraded);
        Note { holder, since, became, attempt }.write(value)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn stage(&self) -> Stage {
        self.state().stage
    }

    /// Whether it is a reader's, or has become one.
    pub(crate) fn is_shared(&self) -> bool {
        self.state().kind == Kind::Shared
    }

    /// Remembers that a node may exist from now on.
    pub(crate) fn ask(&self) {
        self.advance(&[Stage::New], Stage::Asked);
    }

    /// Whether a node may exist.
    pub(crate) fn was_asked(&self) -> bool {
        self.stage() != Stage::New
    }

    /// Remembers that the same caller's attempt may have had a node in an earlier session.
    pub(crate) fn begin_again(&self) {
        self.state().again = true;
    }

    /// Whether a child with the attempt's id is its node, as far as is known. A node whose creation
    /// is not confirmed is behind the earlier one, and perhaps behind the waiter that asks: two that
    /// followed each other would wait for a TTL.
    pub(crate) fn may_own(&self, child: &str) -> bool {
        self.node().map_or_else(|| !self.state().again, |node| node.name() == child)
    }

    /// The node, once its creation is confirmed.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node.get()
    }

    /// Whether this node is known to stand right behind the attempt's.
    pub(crate) fn is_right_before(&self, node: &Node) -> bool {
        self.node().is_some_and(|own| node.is_right_behind(own))
    }

    /// Records the confirmed node; the first one counts.
    pub(crate) fn created(&self, node: Node) -> &Node {
        self.node.get_or_init(|| node)
    }

    /// The grant's validity, once there is a grant.
    pub(crate) fn validity(&self) -> Option<&Validity> {
        self.validity.get()
    }

    /// Lets the grant of a fixed term last until `end`, if the session lives that long.
    pub(crate) fn set_term_end(&self, end: Instant) {
        if self.request.term == Term::Fixed {
            self.state().term_end = end;
        }
    }

    /// Moves the deadline of a grant to the session's, as far as its term goes. Returns whether it
    /// is held. A deadline that has passed stays: its holder may have been told already.
    pub(crate) fn renew(&self, now: Instant, until: Instant) -> bool {
        let Some(validity) = self.validity.get() else { return false };
        if validity.has_ended() || validity.until() <= now {
            return false;
        }
        validity.extend(until.min(self.state().term_end));
        true
    }

    /// Makes the waiting attempt the holder; returns `false` if it is gone.
    pub(crate) fn hold(&self, validity: Validity) -> bool {
        // An attempt is granted once; setting it twice cannot happen.
        let _ = self.validity.set(validity);
        let holds = self.advance(&[Stage::New, Stage::Asked], Stage::Held).is_some();
        if let Kind::Permit { .. } = self.state().kind {
            self.changed.notify_waiters();
        }
        holds
    }

    /// Gives the lock up; returns `false` if the grant has ended before.
    pub(crate) fn pass(&self) -> bool {
        let passed = self.advance(&[Stage::Held], Stage::Passed).is_some();
        if passed {
            self.changed.notify_waiters();
        }
        passed
    }

    /// Records that the server knows of a downgrade: the holder shares the lock from now on.
    pub(crate) fn downgrade(&self) {
        self.state().kind = Kind::Shared;
        self.changed.notify_waiters();
    }

    /// Moves on to a stage if the current one is in `from`. Returns the stage before.
    fn advance(&self, from: &[Stage], to: Stage) -> Option<Stage> {
        let mut state = self.state();
        let moves = from.contains(&state.stage);
        moves.then(|| std::mem::replace(&mut state.stage, to))
    }

    /// Records that the node is gone without a release. A holder is told.
    pub(crate) fn gone(&self) {
        let before = self.advance(&[Stage::New, Stage::Asked, Stage::Held], Stage::Gone);
        if before == Some(Stage::Held)
            && let Some(validity) = self.validity.get()
        {
            validity.lose(LossReason::EntryGone);
        }
        if before.is_some() {
            self.changed.notify_waiters();
        }
    }

    /// Whether it held the lock and has been told of its loss.
    pub(crate) fn is_lost(&self) -> bool {
        self.validity().is_some_and(Validity::has_ended)
    }

    /// Begins to look after the node; returns `false` if a task does already.
    pub(crate) fn guard(&self) -> bool {
        !std::mem::replace(&mut self.state().guarded, true)
    }

    /// Records the watch that the server has confirmed. The server tells of nothing but the node's
    /// end, so one is enough.
    pub(crate) fn watch(&self, event: Event) {
        let _ = self.watch.set(event);
    }

    /// Whether the server would have told of the node's end.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.get().is_some()
    }

    /// Whether the server would have told of the node's end, and did not: neither to this attempt
    /// nor to the task that waits for the event, which may not have run since.
    pub(crate) fn is_known_to_be_there(&self) -> bool {
        self.watch.get().is_some_and(|event| event.clone().now().is_none()) && !self.has_ended()
    }

    /// Whether the holder gave the lock up, or the node is gone.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.stage(), Stage::Passed | Stage::Gone)
    }

    /// Waits until the attempt ended or became `wanted`.
    pub(crate) async fn news(&self, wanted: Option<Became>) -> News {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            match (self.stage(), wanted) {
                (Stage::Passed, _) => return News::Passed,
                (Stage::Gone, _) => return News::Gone,
                (Stage::Held, Some(Became::Admitted)) => return News::Became(Became::Admitted),
                (_, Some(Became::Shared)) if self.is_shared() => {
                    return News::Became(Became::Shared);
                }
                _ => changed.await,
            }
        }
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
