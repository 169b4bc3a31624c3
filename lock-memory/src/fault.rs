//! Scripted faults of one client.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Clock, LockName};

use crate::{
    MemoryLock, MemoryStore,
    store::Client,
    wire::network::{Network, Refusal, Trouble},
};

/// Switches for the faults of one client. Get them from [`MemoryLock::faults`], or from
/// [`MemoryStore::faults`] for clients that connected by URL. Faults take effect at once and last
/// until [`heal`](Self::heal).
///
/// ```
/// # mod distlock { pub use lock_core::*; pub use lock_memory as memory; }
/// use distlock::{Locks, memory::MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> lock_core::Result<()> {
/// let client = MemoryStore::new().client();
/// let faults = client.faults();
/// let locks = Locks::new(client);
///
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// faults.partition();
/// guard.lost().await; // my code under test must stop here
/// assert!(!guard.is_valid());
/// # Ok(()) }
/// ```
///
/// A client waits for an answer for one TTL, for a renewal's answer for a third of it. Then it
/// gives up: [`Error::Unavailable`](lock_core::Error::Unavailable). A request that is given up
/// before it arrives does not arrive any more. One that has arrived keeps its effect. A
/// [close](lock_core::Locks::close) is a request, too. If the last clone is dropped instead, the
/// store forgets the client in spite of all faults, unless the client has crashed.
#[derive(Clone, Debug)]
pub struct Faults {
    network: Network,
    client: Weak<Client>,
}

impl Faults {
    fn of(client: &Arc<Client>) -> Self {
        Self { network: client.network.clone(), client: Arc::downgrade(client) }
    }

    /// Cuts the network: no request, reply or push arrives any more. Everything sent meanwhile is
    /// delivered after [`heal`](Self::heal), as with TCP.
    pub fn partition(&self) {
        self.network.change(|t| (t.there.cut, t.back.cut) = (true, true));
    }

    /// Cuts half of the network: requests arrive, replies and pushes do not.
    pub fn cut_replies(&self) {
        self.network.change(|t| t.back.cut = true);
    }

    /// Makes the network slow: from now on requests, replies and pushes take this long to arrive,
    /// also those already on their way. Zero is no delay, as at first.
    ///
    /// A renewal without an answer within a third of the TTL has failed. So keep twice this time
    /// below that, unless the locks are to be lost.
    pub fn delay(&self, time: Duration) {
        self.network.change(|t| (t.there.takes, t.back.takes) = (time, time));
    }

    /// Makes half of the network slow: requests take this long to arrive, replies and pushes as
    /// before.
    pub fn delay_requests(&self, time: Duration) {
        self.network.change(|t| t.there.takes = time);
    }

    /// Makes half of the network slow: replies and pushes take this long to arrive, requests as
    /// before. The store has acted by then.
    pub fn delay_replies(&self, time: Duration) {
        self.network.change(|t| t.back.takes = time);
    }

    /// Loses the next request on its way. It has no effect, and the client sends it again at the
    /// time at which it would have had the reply. Each call loses one more.
    pub fn lose_request(&self) {
        self.network.change(|t| t.there.to_lose += 1);
    }

    /// Loses the reply to the next request, or to one that is under way. The request takes effect
    /// all the same, and the client sends it again. Each call loses one more.
    pub fn lose_reply(&self) {
        self.network.change(|t| t.back.to_lose += 1);
    }

    /// Revokes all grants of this client under a name, as an operator's
    /// [`revoke`](lock_core::Locks::revoke) does. Its guards are lost with
    /// [`LossReason::EntryGone`](lock_core::LossReason::EntryGone) as soon as the store's push
    /// arrives, and the next in line is served. Returns how many grants were lost; 0 if it holds
    /// nothing there.
    ///
    /// Waiters stay; `revoke` removes a waiter.
    pub fn lose(&self, name: &LockName) -> usize {
        self.client.upgrade().map_or(0, |client| client.store.lose(name, &client.tell))
    }

    /// Denies each request that arrives, renewals, too, as after a right was withdrawn:
    /// [`Error::Denied`](lock_core::Error::Denied). Nothing that was granted is taken away, but
    /// nothing is renewed.
    pub fn deny(&self) {
        self.network.change(|t| t.refusal = Some(Refusal::Denied));
    }

    /// Answers each request that arrives, renewals, too, with what the client cannot use:
    /// [`Error::Rejected`](lock_core::Error::Rejected). Such a request has no effect; one before it,
    /// whose reply was lost, may have had one.
    pub fn reject(&self) {
        self.network.change(|t| t.refusal = Some(Refusal::Rejected));
    }

    /// Stops the watchdog, as a starved executor does; everything else works.
    pub fn pause_renewal(&self) {
        self.network.change(|t| t.renewal_paused = true);
    }

    /// Ends all faults except a crash. Everything on its way arrives at once.
    pub fn heal(&self) {
        self.network.change(|t| *t = Trouble { crashed: t.crashed, ..Trouble::default() });
    }

    /// Acts as if the client's process had died: its entries stay until they expire, and it sends
    /// and receives nothing any more, for ever.
    pub fn crash(&self) {
        self.network.change(|t| t.crashed = Some(Clock::Tokio.now()));
    }
}

impl MemoryLock {
    /// Returns the switches for faults of this client's network and watchdog.
    pub fn faults(&self) -> Faults {
        Faults::of(&self.session.client)
    }
}

impl MemoryStore {
    /// Returns the faults of each connected client, in the order in which they connected. So a test
    /// can break clients that the code under test connected by URL:
    ///
    /// ```
    /// # mod distlock {
    /// #     pub use {lock_core::*, lock_memory as memory};
    /// #     pub async fn connect(url: &str) -> Result<Locks> {
    /// #         let config = memory::MemoryConfig::from_url(&url.parse()?)?;
    /// #         memory::MemoryLock::connect(config).await.map(Locks::new)
    /// #     }
    /// # }
    /// use distlock::memory::MemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> distlock::Result<()> {
    /// let locks = distlock::connect("memory:t1").await?; // somewhere in the code under test
    /// let guard = locks.lock("orders/42")?.acquire().await?;
    ///
    /// for faults in MemoryStore::named("t1").faults() {
    ///     faults.partition();
    /// }
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    pub fn faults(&self) -> Vec<Faults> {
        self.clients().iter().map(Faults::of).collect()
    }
}
