//! How two holders may overlap although every process runs.

use std::fmt;

/// A way in which a holder may notice its loss only after the next grant, although its process
/// runs.
///
/// [`Guarantees::overlaps`](crate::Guarantees::overlaps) lists the overlaps of a store as it is
/// deployed. In each of them the holder learns of its loss by a message of the store, as fast as
/// [`LossSignal`](crate::LossSignal) says, or by its own deadline if the store sends none. A
/// resource that checks the [fencing token](crate::FencingToken) rejects the holder's late writes,
/// as far as [`Guarantees::fencing`](crate::Guarantees::fencing) promises rising tokens for the
/// same fault.
///
/// Two more ways are common to all stores, and not in any list: a process that is stopped for longer
/// than its TTL writes late; and, where there is a server, a holder that is cut off stops late if the
/// clocks of its machine and of the server run at speeds that differ by more than a twentieth, as
/// `chronyd` slews by default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Overlap {
    /// An operator takes the lock away: [`Locks::revoke`](crate::Locks::revoke).
    Revoked,
    /// The lock's keys are deleted, evicted or flushed by anything else than this library.
    Deleted,
    /// The store ends a session that is alive: an operator revokes an etcd lease, or a former
    /// leader of etcd revokes leases after it stepped down (etcd issue 15247).
    SessionRevokedEarly,
    /// The server starts again without the newest writes.
    Restart,
    /// Another node takes over without the newest writes.
    Failover,
    /// The clock that the server uses to end holds jumps forward, or another server takes over whose
    /// clock is ahead.
    ClockJump,
    /// The cluster's leader stalls while it is cut off from the other nodes, and then confirms a
    /// renewal of a session that they have ended.
    LeaderStalled,
}

impl Overlap {
    /// Every class.
    pub const ALL: &'static [Self] = &[
        Self::Revoked,
        Self::Deleted,
        Self::SessionRevokedEarly,
        Self::Restart,
        Self::Failover,
        Self::ClockJump,
        Self::LeaderStalled,
    ];
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Revoked => "an operator revokes the lock",
            Self::Deleted => "the lock's keys are deleted",
            Self::SessionRevokedEarly => "the store ends a living session",
            Self::Restart => "a restart forgets the newest writes",
            Self::Failover => "a failover forgets the newest writes",
            Self::ClockJump => "the server's clock jumps forward",
            Self::LeaderStalled => "the leader stalls while it is cut off",
        })
    }
}
