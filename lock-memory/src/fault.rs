//! Scripted faults of one client.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Clock, LockName};

use crate::{
    MemoryLock, MemoryStore,
    store::Client,
    wire::network::{Network, Trouble},
};

/// The faults of one client; get them from [`MemoryLock::faults`], or from [`MemoryStore::faults`] for
/// clients that connected by URL. They take effect at once and last until [`heal`](Self::heal).
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
/// A client waits for an answer for one TTL (for that to a renewal a third of it), and then gives up:
/// [`Error::Unavailable`](lock_core::Error::Unavailable). What it has given up before it arrived does not
/// arrive any more, and what has arrived keeps its effect. A [close](lock_core::Locks::close) is a request,
/// too; where the last clone is dropped instead, the store forgets the client whatever its faults are,
/// unless it has crashed.
#[derive(Clone, Debug)]
pub struct Faults {
    network: Network,
    client: Weak<Client>,
}

impl Faults {
    fn of(client: &Arc<Client>) -> Self {
        Self { network: client.network.clone(), client: Arc::downgrade(client) }
    }

    /// Cuts the network: no request, reply or push arrives any more. What is sent meanwhile is
    /// delivered after [`heal`](Self::heal), as TCP does.
    pub fn partition(&self) {
        self.network.change(|t| (t.requests_cut, t.replies_cut) = (true, true));
    }

    /// Cuts half of the network: requests arrive, replies and pushes do not.
    pub fn cut_replies(&self) {
        self.network.change(|t| t.replies_cut = true);
    }

    /// Makes the network slow: from now on whatever is sent takes so long to arrive, requests as well
    /// as replies and pushes. What is on its way already takes as long. Zero is no delay, as at first.
    ///
    /// A renewal that is not answered within a third of the TTL has failed, so twice this time should be
    /// less than that, unless the locks are to be lost.
    pub fn delay(&self, time: Duration) {
        self.network.change(|t| (t.requests_take, t.replies_take) = (time, time));
    }

    /// Makes half of the network slow: requests take so long to arrive, replies and pushes as before.
    pub fn delay_requests(&self, time: Duration) {
        self.network.change(|t| t.requests_take = time);
    }

    /// Makes half of the network slow: replies and pushes take so long to arrive, requests as before.
    /// What the store does is done by then.
    pub fn delay_replies(&self, time: Duration) {
        self.network.change(|t| t.replies_take = time);
    }

    /// Loses the next request on its way: it has no effect, and is sent again when the client would
    /// have had the reply. Each call loses one more.
    pub fn lose_request(&self) {
        self.network.change(|t| t.requests_to_lose += 1);
    }

    /// Loses the reply to the next request, which takes effect all the same, and is sent again; also to
    /// one that is under way. Each call loses one more.
    pub fn lose_reply(&self) {
        self.network.change(|t| t.replies_to_lose += 1);
    }

    /// Takes away what this client holds under a name, as an operator's
    /// [`revoke`](lock_core::Locks::revoke) does: its guards are lost with
    /// [`LossReason::EntryGone`](lock_core::LossReason::EntryGone) as soon as the store's word arrives,
    /// and the next in line is served. Answers how many grants were lost; 0 if it holds nothing there.
    ///
    /// Waiters stay; `revoke` takes the place of one.
    pub fn lose(&self, name: &LockName) -> usize {
        self.client.upgrade().map_or(0, |client| client.store.lose(name, &client.tell))
    }

    /// Stops the watchdog, as a starved executor does; everything else works.
    pub fn pause_renewal(&self) {
        self.network.change(|t| t.renewal_paused = true);
    }

    /// Ends all faults but a crash. What is on its way arrives at once.
    pub fn heal(&self) {
        self.network.change(|t| *t = Trouble { crashed: t.crashed, ..Trouble::default() });
    }

    /// What the store sees when the client's process dies: its entries stay until they expire,
    /// nothing is said any more, and nothing comes back.
    pub fn crash(&self) {
        self.network.change(|t| t.crashed = Some(Clock::Tokio.now()));
    }
}

impl MemoryLock {
    /// Breaks this client's network and watchdog.
    pub fn faults(&self) -> Faults {
        Faults::of(&self.session.client)
    }
}

impl MemoryStore {
    /// The faults of each client that is connected, in the order in which they connected. So a test can
    /// break what the code under test connected by URL:
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
