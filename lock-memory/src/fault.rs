//! Scripted faults of one client.

use lock_core::{Clock, Instant};
use tokio::sync::watch;

/// What is wrong with a client's network and its watchdog right now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Trouble {
    /// Requests do not arrive.
    pub(crate) requests_cut: bool,
    /// Replies and pushes do not arrive.
    pub(crate) replies_cut: bool,
    /// How many replies will be lost although their requests arrive.
    pub(crate) replies_to_lose: u32,
    /// The watchdog stands still.
    pub(crate) renewal_paused: bool,
    /// Since when the process is dead.
    pub(crate) crashed: Option<Instant>,
}

/// The faults of one client; get them from [`MemoryLock::faults`](crate::MemoryLock::faults).
/// They take effect at once and last until [`heal`](Self::heal).
///
/// ```
/// use lock_core::Locks;
/// use lock_memory::MemoryStore;
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
#[derive(Clone, Debug)]
pub struct Faults(pub(crate) watch::Sender<Trouble>);

impl Faults {
    /// Cuts the network: no request, reply or push arrives any more. What is sent meanwhile is
    /// delivered after [`heal`](Self::heal), as TCP does.
    pub fn partition(&self) {
        self.0.send_modify(|t| (t.requests_cut, t.replies_cut) = (true, true));
    }

    /// Cuts half of the network: requests arrive, replies and pushes do not.
    pub fn cut_replies(&self) {
        self.0.send_modify(|t| t.replies_cut = true);
    }

    /// Loses the reply to the next request, which takes effect all the same.
    pub fn lose_reply(&self) {
        self.0.send_modify(|t| t.replies_to_lose += 1);
    }

    /// Stops the watchdog, as a starved executor does; everything else works.
    pub fn pause_renewal(&self) {
        self.0.send_modify(|t| t.renewal_paused = true);
    }

    /// Ends all faults but a crash.
    pub fn heal(&self) {
        self.0.send_modify(|t| *t = Trouble { crashed: t.crashed, ..Trouble::default() });
    }

    /// What the store sees when the client's process dies: its entries stay until they expire,
    /// nothing is said any more, and nothing comes back.
    pub fn crash(&self) {
        self.0.send_modify(|t| t.crashed = Some(Clock::Tokio.now()));
    }

    pub(crate) fn now(&self) -> Trouble {
        *self.0.borrow()
    }

    /// Waits until the trouble is as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&Trouble) -> bool) {
        // The sender is in `self`, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|trouble| wanted(trouble)).await;
    }

    /// Takes one lost reply, if one is due.
    pub(crate) fn takes_reply(&self) -> bool {
        self.0.send_if_modified(|t| {
            let due = t.replies_to_lose > 0;
            t.replies_to_lose -= u32::from(due);
            due
        })
    }
}
