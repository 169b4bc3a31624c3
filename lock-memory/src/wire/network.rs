//! The network between one client and the store, and its faults.

use std::{collections::VecDeque, time::Duration};

use lock_core::{
    Clock, Effect, Error, Instant,
    keep::errors::{denied, rejected},
};
use tokio::sync::{mpsc, watch};

/// The present faults of a client's network and its watchdog.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Trouble {
    /// The way of requests to the store.
    pub(crate) there: Way,
    /// The way of replies and pushes to the client.
    pub(crate) back: Way,
    /// The watchdog stands still.
    pub(crate) renewal_paused: bool,
    /// How the store refuses each request that arrives.
    pub(crate) refusal: Option<Refusal>,
    /// Time of the process's crash, if it has crashed.
    pub(crate) crashed: Option<Instant>,
}

/// The refusal of a request, which has no effect then.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    Denied,
    Rejected,
}

impl Refusal {
    /// `before`: what an earlier request, whose reply was lost, may have done.
    pub(crate) fn error(self, op: &'static str, before: Effect) -> Error {
        match self {
            Self::Denied => denied("memory", op, "a fault denies it"),
            Self::Rejected => rejected("memory", op, before, "a fault rejects it"),
        }
    }
}

/// The faults of one way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Way {
    /// Nothing arrives.
    pub(crate) cut: bool,
    /// How long a message takes.
    pub(crate) takes: Duration,
    /// Number of messages to lose.
    pub(crate) to_lose: u32,
}

/// One of the two ways.
pub(crate) type Which = fn(&mut Trouble) -> &mut Way;
/// The way of requests to the store.
pub(crate) const THERE: Which = |trouble| &mut trouble.there;
/// The way of replies and pushes to the client.
pub(crate) const BACK: Which = |trouble| &mut trouble.back;

/// One client's network. All clones are the same network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network(watch::Sender<Trouble>);

impl Network {
    pub(crate) fn now(&self) -> Trouble {
        *self.0.borrow()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Trouble)) {
        self.0.send_modify(change);
    }

    /// Waits until a message that was sent at `sent` arrives: the way is open and its delay has
    /// passed. A change of the faults counts at once, also for messages already on their way.
    pub(crate) async fn arrives(&self, which: Which, sent: Instant) {
        let arrival = |mut trouble: Trouble| {
            let Way { cut, takes, .. } = *which(&mut trouble);
            if cut || trouble.crashed.is_some() { Instant::NEVER } else { sent + takes }
        };
        // The usual case takes no lock for writing and no timer.
        if arrival(self.now()) == sent {
            return;
        }
        let mut trouble = self.0.subscribe();
        loop {
            let arrival = arrival(*trouble.borrow_and_update());
            tokio::select! {
                biased;
                () = Clock::Tokio.sleep_until(arrival) => return,
                // The sender is in `self`, so it cannot be gone.
                _ = trouble.changed() => {}
            }
        }
    }

    /// Returns whether to lose this message, and counts it.
    pub(crate) fn loses_one(&self, which: Which) -> bool {
        self.0.send_if_modified(|trouble| {
            let way = which(trouble);
            let due = way.to_lose > 0;
            way.to_lose -= u32::from(due);
            due
        })
    }
}

/// Messages from the store that have not arrived at the client, in order.
#[derive(Debug)]
pub(crate) struct UnderWay<T> {
    network: Network,
    from: mpsc::UnboundedReceiver<T>,
    sent: VecDeque<(Instant, T)>,
    /// Whether only the newest message arrives after an outage.
    newest: bool,
}

impl<T> UnderWay<T> {
    pub(crate) fn new(network: Network, from: mpsc::UnboundedReceiver<T>, newest: bool) -> Self {
        Self { network, from, sent: VecDeque::new(), newest }
    }

    /// Waits for the next message that arrives, or takes in one that the store sends: `Some(None)`.
    /// `None` if the store sends no more.
    pub(crate) async fn step(&mut self) -> Option<Option<T>> {
        let arrival = Self::arrival(&self.network, &mut self.sent);
        let what = tokio::select! {
            what = self.from.recv() => what?,
            what = arrival => return Some(Some(what)),
        };
        if self.newest && self.network.now().back.cut {
            self.sent.clear();
        }
        self.sent.push_back((Clock::Tokio.now(), what));
        Some(None)
    }

    /// Waits for ever while none is under way.
    async fn arrival(network: &Network, sent: &mut VecDeque<(Instant, T)>) -> T {
        if let Some(at) = sent.front().map(|(at, _)| *at) {
            network.arrives(BACK, at).await;
            if let Some((_, what)) = sent.pop_front() {
                return what;
            }
        }
        std::future::pending().await
    }
}
