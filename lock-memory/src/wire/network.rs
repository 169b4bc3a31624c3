//! The network between one client and the store, and its faults.

use std::{collections::VecDeque, time::Duration};

use lock_core::{Clock, Instant};
use tokio::sync::{mpsc, watch};

/// The present faults of a client's network and its watchdog.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Trouble {
    /// Requests do not arrive.
    pub(crate) requests_cut: bool,
    /// Replies and pushes do not arrive.
    pub(crate) replies_cut: bool,
    /// Delay of a request to the store.
    pub(crate) requests_take: Duration,
    /// Delay of a reply or a push to the client.
    pub(crate) replies_take: Duration,
    /// Number of requests to lose on their way.
    pub(crate) requests_to_lose: u32,
    /// Number of replies to lose although their requests arrive.
    pub(crate) replies_to_lose: u32,
    /// The watchdog stands still.
    pub(crate) renewal_paused: bool,
    /// Time of the process's crash, if it has crashed.
    pub(crate) crashed: Option<Instant>,
}

impl Trouble {
    fn requests(&self) -> Option<Duration> {
        (!self.requests_cut && self.crashed.is_none()).then_some(self.requests_take)
    }

    fn replies(&self) -> Option<Duration> {
        (!self.replies_cut && self.crashed.is_none()).then_some(self.replies_take)
    }
}

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

    /// Waits until a request that is sent now arrives at the store.
    pub(crate) async fn request_arrives(&self) {
        self.arrives(Clock::Tokio.now(), Trouble::requests).await;
    }

    /// Waits until a reply or push that was sent at `sent` arrives at the client.
    pub(crate) async fn reply_arrives(&self, sent: Instant) {
        self.arrives(sent, Trouble::replies).await;
    }

    /// Waits until the way is open and its delay has passed. A change of the faults counts at once,
    /// also for messages already on their way.
    async fn arrives(&self, sent: Instant, way: impl Fn(&Trouble) -> Option<Duration>) {
        // The usual case takes no lock for writing and no timer.
        if way(&self.0.borrow()) == Some(Duration::ZERO) {
            return;
        }
        let mut trouble = self.0.subscribe();
        loop {
            let takes = way(&trouble.borrow_and_update());
            let arrival = takes.map_or(Instant::NEVER, |time| sent + time);
            tokio::select! {
                biased;
                () = Clock::Tokio.sleep_until(arrival) => return,
                // The sender is in `self`, so it cannot be gone.
                _ = trouble.changed() => {}
            }
        }
    }

    /// Returns whether to lose this request, and counts it.
    pub(crate) fn loses_request(&self) -> bool {
        self.takes_one(|trouble| &mut trouble.requests_to_lose)
    }

    /// Returns whether to lose this reply, and counts it.
    pub(crate) fn loses_reply(&self) -> bool {
        self.takes_one(|trouble| &mut trouble.replies_to_lose)
    }

    fn takes_one(&self, count: impl Fn(&mut Trouble) -> &mut u32) -> bool {
        self.0.send_if_modified(|trouble| {
            let left = count(trouble);
            let due = *left > 0;
            *left -= u32::from(due);
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
        if self.newest && self.network.now().replies_cut {
            self.sent.clear();
        }
        self.sent.push_back((Clock::Tokio.now(), what));
        Some(None)
    }

    /// Waits for ever while none is under way.
    async fn arrival(network: &Network, sent: &mut VecDeque<(Instant, T)>) -> T {
        if let Some(at) = sent.front().map(|(at, _)| *at) {
            network.reply_arrives(at).await;
            if let Some((_, what)) = sent.pop_front() {
                return what;
            }
        }
        std::future::pending().await
    }
}
