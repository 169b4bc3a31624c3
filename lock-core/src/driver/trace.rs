//! Every `tracing` event that distlock emits, by name and field. Target: `distlock`.
//!
//! | event | level | fields | when |
//! |---|---|---|---|
//! | `attempt` (span) | DEBUG | `lock`, `store`, `attempt` | around each acquire; for a set that is taken at once, with its first name |
//! | `queued` | DEBUG | `lock`, `attempt`, `position` | the attempt waits; position 1 is next; on ZooKeeper not while the place is unknown |
//! | `granted` | INFO | `lock`, `attempt`, `token`, `waited_ms` | the lock is held |
//! | `permits_differ` | WARN | `lock`, `error` | a waiter names another number of permits than others; it waits until they are gone |
//! | `acquire_failed` | WARN | `lock`, `error`, `pause_ms` | an outage ended a wait that [goes on](crate::Lock::wait_through_outages): it acquires again after a pause |
//! | `refused` | DEBUG | `lock`, `attempt`, `error` | the attempt ended without the lock |
//! | `campaign_failed` | WARN | `lock`, `error`, `pause_ms` | `keep_running` does not lead, or lost its leadership, and campaigns again after a pause |
//! | `connect_failed` | WARN | `error`, `pause_ms` | a `Connect` with `retry` tries again after a pause |
//! | `renewed` | DEBUG | `store`, `locks` | one renewal round was confirmed, for this many locks |
//! | `renewal_failed` | WARN | `store`, `at`, `error` | a renewal round failed; it is tried again. Later failures in a row are DEBUG |
//! | `renewals_work` | INFO | `store`, `at`, `failures` | a renewal round was confirmed after so many had failed |
//! | `converted` | INFO | `lock`, `token`, `kind` | a held lock was downgraded or upgraded |
//! | `detached` | INFO | `lock`, `token` | a held lock was detached |
//! | `adopted` | INFO | `lock`, `attempt`, `token` | a lock that another client detached is held here |
//! | `close_failed` | WARN | `store`, `error` | work was done, and the close after it failed |
//! | `lost` | WARN | `lock`, `reason` | a held lock was lost |
//! | `forgotten` | WARN | `lock`, `token`, `reason` | a TTL after the loss of a lock was found its guard is still there, and nothing has asked for its state since: its work goes on without the lock, or the guard was forgotten (`mem::forget`, a leaked `Arc`) |
//! | `orders_cross` | WARN | `lock`, `held` | work that [`run`](crate::Lock::run) does under `held` acquires `lock`, and earlier some work under `lock` acquired `held`: at the same time, each would wait for the other, unless both hold a third lock. Once for two locks, among the first 4,096 pairs |
//! | `released` | INFO | `lock`, `token` | the store confirmed a release, or a close that released the lock |
//! | `release_failed` | WARN | `lock`, `token`, `error` | the store never confirmed a release; it ends with the TTL |
//! | `disconnected` | WARN | `store`, `error` | the connection to the store broke |
//! | `connected` | INFO | `store` | the connection to the store works again |
//! | `unwatched` | WARN | `store`, `error` | the store does not report losses any more; holders have their deadline |
//! | `unexpected` | WARN | `store`, `what` | the store sent a message that belongs to no request |
//! | `caution` | WARN | `store`, `why` | at connect: each of [`Guarantees::cautions`](crate::Guarantees::cautions) |
//! | `opened` | INFO | `store`, `path`, `excludes` | a store in a file was opened; `excludes` says which programs exclude each other |
//!
//! `at` has the servers' addresses, where a URL named them.
//!
//! Names are for people; a lock's name can be long, so metrics should not use it as a label. The
//! feature `metrics` counts the same; `docs/metrics.md` in the repository lists what.
//!
//! `disconnected` and `connected` come from etcd, Redis and ZooKeeper; etcd also has `connected` at
//! the first connect. PostgreSQL has `disconnected` for its connection for pushes, and no event
//! when the next one works; MySQL, PostgreSQL with `pooler=transaction`, SQLite and memory have
//! neither. [`Locks::connections`](crate::Locks::connections) reports the state of the connection
//! for all stores.
//!
//! A lock that is held is not told as forgotten: nothing tells its guard from that of a service
//! which holds it for weeks. [`max_hold`](crate::Lock::max_hold) ends a hold that nobody gives back,
//! and then the event follows. A close is no loss.
//!
//! `orders_cross` knows exclusive locks of one client, which are those of one
//! [`Locks`](crate::Locks) and its clones. The outer one is held by a `run`: a guard of `acquire`
//! may be with another task, or another part of one. The inner one is acquired in the task of that
//! work, without an [`Owner`](crate::Owner).

use std::{fmt::Display, time::Duration};

use tracing::{Level, Span, debug, debug_span, event_enabled, info, warn};
use uuid::Uuid;

use crate::{Error, FencingToken, Kind, LockName, LossReason};

const TARGET: &str = "distlock";

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn attempt(lock: &LockName, store: &str, attempt: Uuid) -> Span {
    debug_span!(target: TARGET, "attempt", %lock, store, %attempt)
}

pub(crate) fn queued(lock: &LockName, attempt: Uuid, position: usize) {
    debug!(target: TARGET, %lock, %attempt, position, "queued");
}

pub(crate) fn granted(lock: &LockName, attempt: Uuid, token: FencingToken, waited: Duration) {
    let waited_ms = millis(waited);
    info!(target: TARGET, %lock, %attempt, token = token.value(), waited_ms, "granted");
}

pub(crate) fn refused(lock: &LockName, attempt: Uuid, error: &Error) {
    debug!(target: TARGET, %lock, %attempt, %error, "refused");
}

pub(crate) fn permits_differ(lock: &LockName, error: &Error) {
    warn!(target: TARGET, %lock, %error, "permits_differ");
}

pub(crate) fn acquire_failed(lock: &LockName, error: &Error, pause: Duration) {
    let pause_ms = millis(pause);
    warn!(target: TARGET, %lock, %error, pause_ms, "acquire_failed");
}

pub(crate) fn campaign_failed(lock: &LockName, error: &Error, pause: Duration) {
    let pause_ms = millis(pause);
    warn!(target: TARGET, %lock, %error, pause_ms, "campaign_failed");
}

pub(crate) fn connect_failed(error: &Error, pause: Duration) {
    let pause_ms = millis(pause);
    warn!(target: TARGET, %error, pause_ms, "connect_failed");
}

pub(crate) fn renewed(store: &str, locks: usize) {
    debug!(target: TARGET, store, locks, "renewed");
}

pub(crate) fn renewal_failed(store: &str, at: Option<&str>, error: &dyn Display, first: bool) {
    match first {
        true => warn!(target: TARGET, store, at, %error, "renewal_failed"),
        false => debug!(target: TARGET, store, at, %error, "renewal_failed"),
    }
}

pub(crate) fn renewals_work(store: &str, at: Option<&str>, failures: u64) {
    info!(target: TARGET, store, at, failures, "renewals_work");
}

pub(crate) fn converted(lock: &LockName, token: FencingToken, kind: Kind) {
    info!(target: TARGET, %lock, token = token.value(), %kind, "converted");
}

pub(crate) fn detached(lock: &LockName, token: FencingToken) {
    info!(target: TARGET, %lock, token = token.value(), "detached");
}

pub(crate) fn adopted(lock: &LockName, attempt: Uuid, token: FencingToken) {
    info!(target: TARGET, %lock, %attempt, token = token.value(), "adopted");
}

pub(crate) fn lost(lock: &LockName, reason: LossReason) {
    warn!(target: TARGET, %lock, %reason, "lost");
}

pub(crate) fn forgotten(lock: &LockName, token: FencingToken, reason: LossReason) {
    warn!(target: TARGET, %lock, token = token.value(), %reason, "forgotten");
}

/// Whether somebody reads warnings: what only they need is not kept otherwise.
pub(crate) fn warns() -> bool {
    event_enabled!(target: TARGET, Level::WARN)
}

pub(crate) fn orders_cross(lock: &LockName, held: &LockName) {
    warn!(target: TARGET, %lock, %held, "orders_cross");
}

pub(crate) fn released(lock: &LockName, token: FencingToken) {
    info!(target: TARGET, %lock, token = token.value(), "released");
}

pub(crate) fn release_failed(lock: &LockName, token: FencingToken, error: &Error) {
    warn!(target: TARGET, %lock, token = token.value(), %error, "release_failed");
}

#[cfg(feature = "signal")]
pub(crate) fn close_failed(store: &str, error: &Error) {
    warn!(target: TARGET, store, %error, "close_failed");
}

/// For drivers: the connection broke.
pub fn disconnected(store: &str, error: &dyn Display) {
    warn!(target: TARGET, store, %error, "disconnected");
}

/// For drivers: the connection works again.
pub fn connected(store: &str) {
    info!(target: TARGET, store, "connected");
}

/// For drivers: a store in a file was opened; `excludes` says which programs it keeps apart.
pub fn opened(store: &str, path: &dyn Display, excludes: &str) {
    info!(target: TARGET, store, %path, excludes, "opened");
}

/// For drivers: the store refuses to report losses; holders have only their deadline.
pub fn unwatched(store: &str, error: &dyn Display) {
    warn!(target: TARGET, store, %error, "unwatched");
}

/// For drivers: the store sent a message that belongs to no request.
pub fn unexpected(store: &str, what: &dyn Display) {
    warn!(target: TARGET, store, %what, "unexpected");
}

/// For drivers: a known fault of the server concerns locks.
pub fn caution(store: &str, why: &dyn Display) {
    warn!(target: TARGET, store, %why, "caution");
}
