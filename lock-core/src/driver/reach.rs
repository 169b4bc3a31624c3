//! The state of a client's connection to its store.

use std::{
    fmt::{self, Display},
    sync::Arc,
};

use futures_util::{Stream, stream::unfold};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

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
pub struct Reach(Arc<watch::Sender<ConnectionState>>);

impl Reach {
    /// Reports that the store has answered.
    pub fn works(&self) {
        // The usual case takes no lock for writing.
        if *self.0.borrow() != ConnectionState::Connected {
            self.0.send_replace(ConnectionState::Connected);
        }
    }

    /// Reports that the connection broke, or that the store does not answer. The first reason
    /// stays.
    pub fn broke(&self, why: &dyn Display) {
        self.0.send_if_modified(|state| {
            let works = *state == ConnectionState::Connected;
            if works {
                *state = ConnectionState::Disconnected(why.to_string().into());
            }
            works
        });
    }

    pub(crate) fn now(&self) -> ConnectionState {
        self.0.borrow().clone()
    }

    /// The present state and each change, until one of `ends`; it keeps nothing alive.
    pub(crate) fn states(
        &self,
        ends: [CancellationToken; 2],
    ) -> impl Stream<Item = ConnectionState> + Send + Unpin + use<> {
        let told = None::<ConnectionState>;
        Box::pin(unfold((self.0.subscribe(), ends, told), next))
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
