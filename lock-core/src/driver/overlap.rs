//! How two holders may overlap although every process runs.

use super::worded::worded;

worded! {
    /// A way in which a holder may notice its loss only after the next grant, although its process
    /// runs.
    ///
    /// [`Guarantees::overlaps`](crate::Guarantees::overlaps) lists the overlaps of a store as it is
    /// deployed. In each of them the holder learns of its loss by a message of the store, as fast
    /// as [`LossSignal`](crate::LossSignal) says, or by its own deadline if the store sends none. A
    /// resource that checks the [fencing token](crate::FencingToken) rejects the holder's late
    /// writes, as far as [`Guarantees::fencing`](crate::Guarantees::fencing) promises rising tokens
    /// for the same fault.
    ///
    /// Two more ways are common to all stores, and not in any list: a process that is stopped for
    /// longer than its TTL writes late; and, where there is a server, a holder that is cut off
    /// stops late if the clocks of its machine and of the server run at speeds that differ by more
    /// than a twentieth, as `chronyd` slews by default.
    pub enum Overlap {
        /// An operator takes the lock away: [`Locks::revoke`](crate::Locks::revoke).
        Revoked => "an operator revokes the lock",
        /// The lock's keys are deleted, evicted or flushed by anything else than this library.
        Deleted => "the lock's keys are deleted",
        /// The store ends a session that is alive: an operator revokes an etcd lease, or a former
        /// leader of etcd revokes leases after it stepped down (etcd issue 15247).
        SessionRevokedEarly => "the store ends a living session",
        /// The server starts again without the newest writes.
        Restart => "a restart forgets the newest writes",
        /// Another node takes over without the newest writes.
        Failover => "a failover forgets the newest writes",
        /// The clock that the server uses to end holds jumps forward, or another server takes over
        /// whose clock is ahead.
        ClockJump => "the server's clock jumps forward",
        /// The cluster's leader stalls while it is cut off from the other nodes, and then confirms
        /// a renewal of a session that they have ended.
        LeaderStalled => "the leader stalls while it is cut off",
    }
}
