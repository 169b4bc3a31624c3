//! One attempt from before its node is asked for to its end: what this process knows of it.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use lock_core::{FencingToken, Instant, Kind, LossReason, Request, Term, Validity, wall_clock};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    layout::{
        note::{Became, Note},
        values::Values,
    },
    session::poison::lock,
    wire::watches::Told,
};

/// One attempt. The session keeps it from before its node is asked for until the node's deletion is
/// confirmed, so that whoever stands behind it in the same process need not ask the server how it
/// fares.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) id: Uuid,
    pub(crate) term: Term,
    kind: Kind,
    /// The attempt whose grant it takes over.
    upgraded: Option<Uuid>,
    holder: Arc<str>,
    since: u64,
    asked: AtomicBool,
    /// Whether the token floor was raised before its node was known.
    overtaken: AtomicBool,
    node: OnceLock<Node>,
    validity: OnceLock<Validity>,
    /// The end of a fixed term, which renewals of the session do not move.
    term_end: Mutex<Instant>,
    state: AtomicU8,
    /// An exclusive attempt whose holder shares the lock by now.
    downgraded: AtomicBool,
    /// Whether a task has begun to look after the node.
    guarded: AtomicBool,
    /// The watch of the node, once the server has told that there is one.
    watch: Mutex<Option<Told>>,
    changed: Notify,
}

/// What the server created for the attempt.
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
}

const WAITING: u8 = 0;
const HELD: u8 = 1;
const PASSED: u8 = 2;
const GONE: u8 = 3;

/// How an attempt ended, for whoever stands behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// It held the lock and gave it up, whether or not the node's deletion has reached the server
    /// yet. Everything that kept it from entering was gone before, and lower sequences never appear
    /// later.
    Passed,
    /// Its node is gone; whether it has ever held the lock is not known.
    Gone,
}

/// What somebody behind an attempt waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum News {
    Ended(Ending),
    Became(Became),
}

impl Attempt {
    pub(crate) fn new(id: Uuid, request: &Request) -> Self {
        let since = wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            id,
            term: request.term,
            kind: request.kind,
            upgraded: None,
            holder: request.holder.clone(),
            since: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            asked: AtomicBool::new(false),
            overtaken: AtomicBool::new(false),
            node: OnceLock::new(),
            validity: OnceLock::new(),
            term_end: Mutex::new(Instant::NEVER),
            state: AtomicU8::new(WAITING),
            downgraded: AtomicBool::new(false),
            guarded: AtomicBool::new(false),
            watch: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// An attempt that takes a grant over, which others know by its first attempt.
    pub(crate) fn upgrade(old: &Self, id: Uuid, request: &Request) -> Self {
        let upgraded = Some(old.upgraded.unwrap_or(old.id));
        Self { upgraded, ..Self::new(id, request) }
    }

    /// The data of the node.
    pub(crate) fn note(&self, became: Option<Became>, values: &Values) -> Vec<u8> {
        let (first, lengths) = (values.first(), values.lengths());
        let (holder, since, attempt) = (&*self.holder, self.since, self.upgraded);
        let mut data = Note { holder, since, became, attempt, first, values: lengths }.write();
        values.append_to(&mut data);
        data
    }

    /// Whether it is, or has become, a reader's.
    pub(crate) fn is_shared(&self) -> bool {
        self.kind == Kind::Shared || self.downgraded.load(Ordering::Acquire)
    }

    /// Remembers that a node may exist from now on.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether a node may exist.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Remembers that its node is older than the token floor, and is not to be used.
    pub(crate) fn overtake(&self) {
        self.overtaken.store(true, Ordering::Relaxed);
    }

    pub(crate) fn was_overtaken(&self) -> bool {
        self.overtaken.load(Ordering::Relaxed)
    }

    /// The node, once its creation is confirmed.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node.get()
    }

    /// Writes down the confirmed node; the first one counts.
    pub(crate) fn created(&self, node: Node) -> &Node {
        self.node.get_or_init(|| node)
    }

    /// The grant's validity, once it is granted.
    pub(crate) fn validity(&self) -> Option<&Validity> {
        self.validity.get()
    }

    /// Lets the grant of a fixed term last until then, if the session does.
    pub(crate) fn set_term_end(&self, end: Instant) {
        if self.term == Term::Fixed {
            *lock(&self.term_end) = end;
        }
    }

    /// Moves the deadline of a grant to the session's, as far as its term goes. Returns whether it
    /// is held. A deadline that has passed stays: its holder may have been told already.
    pub(crate) fn renew(&self, now: Instant, until: Instant) -> bool {
        let Some(validity) = self.validity.get() else { return false };
        if validity.has_ended() || validity.until() <= now {
            return false;
        }
        validity.extend(until.min(*lock(&self.term_end)));
        true
    }

    /// Turns the waiting attempt into the holder; `false` if it is gone.
    pub(crate) fn hold(&self, validity: Validity) -> bool {
        // An attempt is granted once; setting it twice cannot happen.
        let _ = self.validity.set(validity);
        let holds = self.turn(WAITING, HELD);
        if let Kind::Permit { .. } = self.kind {
            self.changed.notify_waiters();
        }
        holds
    }

    /// The holder gives the lock up; `false` if it has ended before.
    pub(crate) fn pass(&self) -> bool {
        let passed = self.turn(HELD, PASSED);
        if passed {
            self.changed.notify_waiters();
        }
        passed
    }

    /// The server knows that the holder shares the lock from now on.
    pub(crate) fn downgrade(&self) {
        self.downgraded.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The node is gone, and nobody gave the lock up. A holder is told.
    pub(crate) fn gone(&self) {
        let end = |state| (state == WAITING || state == HELD).then_some(GONE);
        let Ok(before) = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, end) else {
            return;
        };
        if before == HELD
            && let Some(validity) = self.validity.get()
        {
            validity.lose(LossReason::EntryGone);
        }
        self.changed.notify_waiters();
    }

    /// Whether it held the lock and has been told of its loss.
    pub(crate) fn is_lost(&self) -> bool {
        self.validity().is_some_and(Validity::has_ended)
    }

    /// Begins to look after the node; `false` if somebody does already.
    pub(crate) fn guard(&self) -> bool {
        !self.guarded.swap(true, Ordering::AcqRel)
    }

    /// The server watches the node from now on.
    pub(crate) fn watch(&self, told: Told) {
        *lock(&self.watch) = Some(told);
    }

    /// Whether the end of the node would have been told.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.watch).is_some()
    }

    /// Whether the end of the node would have been told, and was not: neither to this attempt nor to
    /// the task that waits for it, which may not have run since.
    pub(crate) fn is_known_to_be_there(&self) -> bool {
        let watch = lock(&self.watch).clone();
        watch.is_some_and(|told| told.now().is_none()) && !self.has_ended()
    }

    /// Whether the holder gave the lock up, or the node is gone.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), PASSED | GONE)
    }

    /// Waits until the attempt ended.
    pub(crate) async fn ended(&self) -> Ending {
        loop {
            if let News::Ended(ending) = self.news(None).await {
                return ending;
            }
        }
    }

    /// Waits until the attempt ended or became what is wanted.
    pub(crate) async fn news(&self, wanted: Option<Became>) -> News {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            match (self.state.load(Ordering::Acquire), wanted) {
                (PASSED, _) => return News::Ended(Ending::Passed),
                (GONE, _) => return News::Ended(Ending::Gone),
                (HELD, Some(Became::Admitted)) => return News::Became(Became::Admitted),
                (_, Some(Became::Shared)) if self.is_shared() => {
                    return News::Became(Became::Shared);
                }
                _ => changed.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use lock_core::{Instant, LockName};

    use super::*;

    fn attempt(kind: Kind) -> Attempt {
        let mut request = Request::new(LockName::new("a").unwrap(), Duration::from_secs(1));
        request.kind = kind;
        Attempt::new(Uuid::new_v4(), &request)
    }

    fn held() -> (Attempt, Validity) {
        let attempt = attempt(Kind::Exclusive);
        let validity = Validity::new(&LockName::new("a").unwrap(), Instant::NEVER);
        assert!(attempt.hold(validity.clone()));
        (attempt, validity)
    }

    #[tokio::test]
    async fn a_release_passes_the_lock_on_once() {
        let (attempt, validity) = held();
        assert!(attempt.pass());
        attempt.gone();
        assert_eq!(attempt.ended().await, Ending::Passed);
        assert_eq!(validity.loss(), None);
    }

    #[tokio::test]
    async fn a_deleted_holder_is_told_and_passes_nothing_on() {
        let (attempt, validity) = held();
        attempt.gone();
        assert!(!attempt.pass());
        assert_eq!(attempt.ended().await, Ending::Gone);
        assert_eq!(validity.loss(), Some(LossReason::EntryGone));
    }

    #[test]
    fn a_deleted_waiter_is_never_granted() {
        let attempt = attempt(Kind::Exclusive);
        attempt.gone();
        assert!(!attempt.hold(Validity::new(&LockName::new("a").unwrap(), Instant::NEVER)));
    }

    #[tokio::test]
    async fn who_waits_for_it_learns_that_a_holder_shares_the_lock() {
        let (attempt, _) = held();
        let (reader, writer) = (attempt.news(Some(Became::Shared)), attempt.ended());
        tokio::pin!(reader, writer);
        assert!(reader.as_mut().now_or_never().is_none());
        attempt.downgrade();
        assert_eq!(reader.await, News::Became(Became::Shared));
        assert!(writer.as_mut().now_or_never().is_none());
        attempt.pass();
        assert_eq!(writer.await, Ending::Passed);
    }

    #[tokio::test]
    async fn who_waits_for_it_learns_that_permits_are_granted() {
        let attempt = attempt(Kind::Permit { weight: 1, limit: 2 });
        let next = attempt.news(Some(Became::Admitted));
        tokio::pin!(next);
        assert!(next.as_mut().now_or_never().is_none());
        assert!(attempt.hold(Validity::new(&LockName::new("a").unwrap(), Instant::NEVER)));
        assert_eq!(next.await, News::Became(Became::Admitted));
    }
}
