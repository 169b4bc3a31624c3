//! The state of a client's connection to its store.

use std::{
    fmt::{self, Display},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{Stream, stream::unfold};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::driver::{meter, trace};

/// The state of a connection, as the driver saw it last; from
/// [`Locks::connection`](crate::Locks::connection).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// The store answers, or there was no request since it did.
    #[default]
    Connected,
    /// The connection broke or the store is silent, with the reason. The driver tries to reach it
    /// again; held locks stay valid until their deadlines.
    Disconnected(Arc<str>),
    /// It was closed, or its runtime has ended. This state is final.
    Closed,
}

impl Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("connected"),
            Self::Disconnected(why) => write!(f, "disconnected: {why}"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// A driver's report of whether it reaches its store. All clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    shared: Arc<Shared>,
    /// How many renewal rounds in a row have failed.
    failed: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Shared {
    state: watch::Sender<ConnectionState>,
    /// The servers' addresses, where a URL named them: for events.
    at: OnceLock<String>,
    connection: meter::Connection,
}

impl Reach {
    /// Reports that the store has answered.
    pub fn works(&self) {
        // The usual case takes no lock for writing.
        if *self.shared.state.borrow() != ConnectionState::Connected {
            self.turn(true, || ConnectionState::Connected);
        }
    }

    /// Reports that the connection broke, or that the store does not answer. The first reason
    /// stays.
    pub fn broke(&self, why: &dyn Display) {
        self.turn(false, || ConnectionState::Disconnected(why.to_string().into()));
    }

    fn turn(&self, works: bool, next: impl FnOnce() -> ConnectionState) {
        self.shared.state.send_if_modified(|state| {
            let turns = (*state == ConnectionState::Connected) != works;
            if turns {
                *state = next();
                self.shared.connection.turned(works);
            }
            turns
        });
    }

    /// Counts the connection, in its present state and each later one, until it is closed or its
    /// driver is gone.
    pub(crate) fn meter(&self, store: &'static str) {
        // No driver reports a change meanwhile.
        let state = self.shared.state.borrow();
        self.shared.connection.open(store, *state == ConnectionState::Connected);
    }

    /// The connection is closed.
    pub(crate) fn unmeter(&self) {
        self.shared.connection.close();
    }

    /// Reports that a renewal round was confirmed, for so many locks that are held. Emits the event
    /// `renewed`, and `renewals_work` if rounds have failed before it.
    pub fn renewed(&self, store: &str, locks: usize) {
        meter::renewed(store);
        if self.failed.load(Ordering::Relaxed) > 0 {
            let failures = self.failed.swap(0, Ordering::Relaxed);
            trace::renewals_work(store, self.at(), failures);
        }
        if locks > 0 {
            trace::renewed(store, locks);
        }
    }

    /// Reports that a renewal round failed. Emits the event `renewal_failed`, as a warning for the
    /// first one in a row.
    pub fn renewal_failed(&self, store: &str, error: &dyn Display) {
        self.look_failed(store, error);
        meter::renewal_failed(store);
    }

    /// Reports that a look at the queue was refused: the same event, but no failed round counts.
    #[doc(hidden)]
    pub fn look_failed(&self, store: &str, error: &dyn Display) {
        let first = self.failed.fetch_add(1, Ordering::Relaxed) == 0;
        trace::renewal_failed(store, self.at(), error, first);
    }

    /// Returns a report to the same state that counts failed rounds by itself: for one of several
    /// servers whose outages have nothing to do with each other.
    pub fn of_one_server(&self) -> Self {
        Self { shared: self.shared.clone(), failed: Arc::default() }
    }

    /// Sets the servers' addresses.
    pub(crate) fn place(&self, at: &str) {
        // The first one stays: a driver has one client.
        let _ = self.shared.at.set(at.to_owned());
    }

    fn at(&self) -> Option<&str> {
        self.shared.at.get().map(String::as_str)
    }

    pub(crate) fn now(&self) -> ConnectionState {
        self.shared.state.borrow().clone()
    }

    /// The present state and each change, until one of `ends`; it keeps nothing alive.
    pub(crate) fn states(
        &self,
        ends: [CancellationToken; 2],
    ) -> impl Stream<Item = ConnectionState> + Send + Unpin + use<> {
        let told = None::<ConnectionState>;
        Box::pin(unfold((self.shared.state.subscribe(), ends, told), next))
    }
}

type States = (watch::Receiver<ConnectionState>, [CancellationToken; 2], Option<ConnectionState>);

async fn next((mut states, ends, told): States) -> Option<(ConnectionState, States)> {
    loop {
        if told == Some(ConnectionState::Closed) {
            return None;
        }
        let now = match ends.iter().any(CancellationToken::is_cancelled) {
            true => ConnectionState::Closed,
            false => states.borrow_and_update().clone(),
        };
        if told.as_ref() != Some(&now) {
            return Some((now.clone(), (states, ends, Some(now))));
        }
        tokio::select! {
            // The sender outlives the client, and the client's end is one of `ends`.
            Ok(()) = states.changed() => {}
            () = ends[0].cancelled() => {}
            () = ends[1].cancelled() => {}
        }
    }
}
