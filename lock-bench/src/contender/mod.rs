//! Who is measured: distlock, and what runs beside it.

pub(crate) mod all;
mod distlock;
mod floor;
mod usual;
mod way;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub(crate) use self::way::MOST_APART;
use crate::{Failure, Workload};

/// What a contender stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// distlock.
    Distlock,
    /// distlock in a mode of the store that keeps no order of waiters.
    Unordered,
    /// The bare client, which sends the least that takes and frees a name. It promises nothing.
    FloorLeast,
    /// The bare client, which touches as many keys as distlock does.
    FloorKeys,
    /// What people use on this store today: the real program or library.
    Usual,
    /// The same, written again here because the real one is not installed.
    Imitation,
}

impl Role {
    /// Whether two holders at once are a fault: floors do not wait, so they take names of their own.
    pub fn excludes(self) -> bool {
        matches!(self, Self::Distlock | Self::Unordered | Self::Usual)
    }

    /// Whether it can wait for a name that another worker holds.
    pub fn waits(self) -> bool {
        !matches!(self, Self::FloorLeast | Self::FloorKeys)
    }
}

/// A way to lock on one store.
#[async_trait]
pub(crate) trait Contender: Send + Sync {
    /// Its name in tables: "distlock", "SET NX PX + compare-and-delete".
    fn name(&self) -> String;

    /// What it stands for.
    fn role(&self) -> Role;

    /// Connects one process to the store at this URL. All workers of a process share it, as the
    /// tasks of a program share a client.
    async fn open(&self, url: &str, workload: &Workload) -> Result<Box<dyn Client>, Failure>;
}

/// A client of one process.
#[async_trait]
pub(crate) trait Client: Send + Sync {
    /// Makes what one worker works with. `name` is the full name of its lock, below the run's
    /// prefix; `shared` as in [`crate::Turn`].
    async fn worker(&self, name: &str, shared: bool) -> Result<Box<dyn Worker>, Failure>;

    /// Disconnects. A drop does it, too, but removes nothing that stands in the store.
    async fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// What one worker works with.
#[async_trait]
pub(crate) trait Worker: Send {
    /// Takes the lock, and returns its fencing token if there is one.
    async fn acquire(&mut self) -> Result<Option<u64>, Failure>;

    /// Gives it back. Called once after each successful `acquire`.
    async fn release(&mut self) -> Result<(), Failure>;
}
