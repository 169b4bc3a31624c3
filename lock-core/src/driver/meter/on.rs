//! The metrics, as `docs/metrics.md` lists them.

use std::{
    sync::Mutex,
    time::{Duration, UNIX_EPOCH},
};

use metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

use crate::{
    Clock, Error, Instant, Kind, LossReason, Request, Wait, keep::poison::lock, wall_clock,
};

const ACQUIRE_SECONDS: &str = "distlock_acquire_seconds";
const ACQUIRED: &str = "distlock_acquired_total";
const ACQUIRES_FAILED: &str = "distlock_acquires_failed_total";
const BUILD: &str = "distlock_build_info";
const CONNECTIONS: &str = "distlock_connections";
const CONTENDED: &str = "distlock_contended_total";
const HELD: &str = "distlock_held";
const HOLD_SECONDS: &str = "distlock_hold_seconds";
const LAST_FAILED: &str = "distlock_last_failed_renewal_timestamp_seconds";
const LAST_RENEWAL: &str = "distlock_last_renewal_timestamp_seconds";
const LOST: &str = "distlock_lost_total";
const RENEWALS_FAILED: &str = "distlock_renewals_failed_total";
const TIMED_OUT: &str = "distlock_timed_out_total";
const WAITING: &str = "distlock_waiting";

const DENIED: &str = "denied";
const MISCONFIGURED: &str = "misconfigured";
const REJECTED: &str = "rejected";
const UNAVAILABLE: &str = "unavailable";

fn count(name: &'static str, labels: Vec<Label>) -> Counter {
    counter!(target: "distlock", name, labels)
}

fn level(name: &'static str, labels: Vec<Label>) -> Gauge {
    gauge!(target: "distlock", name, labels)
}

fn times(name: &'static str, labels: Vec<Label>) -> Histogram {
    histogram!(target: "distlock", name, labels)
}

/// Describes all metrics. At each connect: the recorder may have been installed since the last one.
pub(crate) fn describe(store: &'static str) {
    describe_histogram!(ACQUIRE_SECONDS, Unit::Seconds, "From the request to the grant");
    describe_counter!(ACQUIRED, Unit::Count, "Grants");
    describe_counter!(ACQUIRES_FAILED, Unit::Count, "Acquires that failed, and not on a busy lock");
    describe_gauge!(BUILD, "Always 1; the version of distlock is a label");
    describe_gauge!(CONNECTIONS, Unit::Count, "Open connections, by their state");
    describe_counter!(CONTENDED, Unit::Count, "Tries that found the lock taken");
    describe_gauge!(HELD, Unit::Count, "Grants that are held now");
    describe_histogram!(HOLD_SECONDS, Unit::Seconds, "From the grant to its end");
    describe_gauge!(LAST_FAILED, Unit::Seconds, "When a renewal round failed last, since 1970");
    describe_gauge!(LAST_RENEWAL, Unit::Seconds, "When renewals were confirmed last, since 1970");
    describe_counter!(LOST, Unit::Count, "Grants that ended before they were given back");
    describe_counter!(RENEWALS_FAILED, Unit::Count, "Renewal rounds that were not confirmed");
    describe_counter!(TIMED_OUT, Unit::Count, "Acquires whose wait limit passed");
    describe_gauge!(WAITING, Unit::Count, "Acquires that wait now");
    level(BUILD, vec![Label::new("version", env!("CARGO_PKG_VERSION"))]).set(1.0);
    // A rate sees the first failure only if there was a zero before it.
    count(RENEWALS_FAILED, vec![Label::new("store", store)]).increment(0);
}

fn labels(store: &'static str, request: &Request) -> Vec<Label> {
    let kind = match request.kind {
        _ if request.value.is_some() => "leader",
        Kind::Exclusive => "exclusive",
        Kind::Shared => "shared",
        Kind::Permit { .. } => "permits",
    };
    let mut labels = vec![Label::new("store", store), Label::new("kind", kind)];
    if request.named {
        labels.push(Label::new("name", request.name.to_string()));
    }
    labels
}

fn failures(mut labels: Vec<Label>, error: &'static str) -> Counter {
    labels.push(Label::new("error", error));
    count(ACQUIRES_FAILED, labels)
}

/// Begins what the alarms count. A rate sees the first grant or failure only if there was a zero
/// before it.
pub(crate) fn zeros(store: &'static str, request: &Request) {
    let labels = labels(store, request);
    for counted in [ACQUIRED, CONTENDED, TIMED_OUT] {
        count(counted, labels.clone()).increment(0);
    }
    for error in [DENIED, MISCONFIGURED, REJECTED, UNAVAILABLE] {
        failures(labels.clone(), error).increment(0);
    }
}

/// An acquire that waits, until this is dropped. A try does not wait.
pub(crate) struct Waiting(Option<Gauge>);

impl Waiting {
    pub(crate) fn begin(store: &'static str, request: &Request) -> Self {
        zeros(store, request);
        let labels = labels(store, request);
        let waiting = (request.wait == Wait::Queue).then(|| level(WAITING, labels));
        Self(waiting.inspect(|waiting| waiting.increment(1.0)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(waiting) = &self.0 {
            waiting.decrement(1.0);
        }
    }
}

pub(crate) fn granted(store: &'static str, request: &Request, waited: Duration) {
    let labels = labels(store, request);
    times(ACQUIRE_SECONDS, labels.clone()).record(waited.as_secs_f64());
    count(ACQUIRED, labels).increment(1);
}

pub(crate) fn contended(store: &'static str, request: &Request) {
    count(CONTENDED, labels(store, request)).increment(1);
}

pub(crate) fn timed_out(store: &'static str, request: &Request) {
    count(TIMED_OUT, labels(store, request)).increment(1);
}

/// Counts an acquire that failed for another reason than a busy lock.
pub(crate) fn acquire_failed(store: &'static str, request: &Request, error: &Error) {
    let error = match error {
        Error::Contended { .. } | Error::WaitTimeout { .. } => return,
        Error::Unavailable { .. } => UNAVAILABLE,
        Error::Denied { .. } => DENIED,
        Error::Rejected { .. } => REJECTED,
        Error::Misconfigured { .. } => MISCONFIGURED,
        Error::PlaceLost { .. } => "place_lost",
        Error::Lost { .. } => "lost",
        Error::Closed { .. } => "closed",
        _ => "invalid",
    };
    failures(labels(store, request), error).increment(1);
}

pub(crate) fn renewed(store: &str) {
    stamp(LAST_RENEWAL, store);
}

pub(crate) fn renewal_failed(store: &str) {
    count(RENEWALS_FAILED, vec![Label::new("store", store.to_owned())]).increment(1);
    stamp(LAST_FAILED, store);
}

fn stamp(name: &'static str, store: &str) {
    // A clock that is set before 1970 is no reason to stop.
    let now = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    level(name, vec![Label::new("store", store.to_owned())]).set(now.as_secs_f64());
}

/// One grant, from its begin to its first end.
#[derive(Debug, Default)]
pub(crate) struct Holding(Mutex<Option<(Vec<Label>, Instant)>>);

impl Holding {
    pub(crate) fn begin(&self, store: &'static str, request: &Request) {
        let labels = labels(store, request);
        level(HELD, labels.clone()).increment(1.0);
        // Not the client's clock: a guard may be dropped where that cannot be read.
        *lock(&self.0) = Some((labels, Clock::Boot.now()));
    }

    pub(crate) fn end(&self, lost: Option<LossReason>) {
        let Some((mut labels, since)) = lock(&self.0).take() else { return };
        level(HELD, labels.clone()).decrement(1.0);
        let held = Clock::Boot.now().since(since);
        times(HOLD_SECONDS, labels.clone()).record(held.as_secs_f64());
        if let Some(reason) = lost {
            labels.push(Label::new("reason", word(reason)));
            count(LOST, labels).increment(1);
        }
    }
}

impl Drop for Holding {
    /// The runtime may have ended before the grant did.
    fn drop(&mut self) {
        self.end(None);
    }
}

/// `EntryGone` as `entry_gone`.
fn word(reason: LossReason) -> String {
    let mut word = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// One connection, in the state that its driver reports.
#[derive(Debug, Default)]
pub(crate) struct Connection(Mutex<State>);

/// The store, and whether it answers; `None` if it is not open.
type State = Option<(&'static str, bool)>;

impl Connection {
    pub(crate) fn open(&self, store: &'static str, works: bool) {
        self.change(|_| Some((store, works)));
    }

    pub(crate) fn turned(&self, works: bool) {
        self.change(|state| state.map(|(store, _)| (store, works)));
    }

    pub(crate) fn close(&self) {
        self.change(|_| None);
    }

    fn change(&self, change: impl FnOnce(State) -> State) {
        let mut state = lock(&self.0);
        if let Some((store, works)) = *state {
            connections(store, works).decrement(1.0);
        }
        *state = change(*state);
        if let Some((store, works)) = *state {
            connections(store, works).increment(1.0);
        }
    }
}

/// With the driver: clients may share it.
impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

fn connections(store: &'static str, works: bool) -> Gauge {
    let state = if works { "connected" } else { "disconnected" };
    level(CONNECTIONS, vec![Label::new("store", store), Label::new("state", state)])
}
