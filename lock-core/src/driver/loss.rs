//! How a lock can be lost.

use super::worded::worded;

worded! {
    /// How a lock was lost.
    pub enum LossReason {
        /// The holder's own deadline passed: renewals failed, hung, or came too late.
        Expired => "it could not be renewed before its deadline",
        /// A fixed term was over.
        TermOver => "its fixed term was over",
        /// The maximum hold time was over.
        MaxHold => "its maximum hold time was over",
        /// The caller did not poll its acquire for one TTL after the grant, so the lock was given
        /// back.
        NotCollected => "its acquire was not polled for one TTL after the grant",
        /// The store ended the holder's session.
        SessionEnded => "the store ended the session",
        /// [`Locks::close`](crate::Locks::close) was called here, and gave the lock back. It is a
        /// release, reported as a loss to work that still runs under the lock.
        Closed => "its connection was closed here, and gave it back",
        /// The tokio runtime that connected has ended, so the lock is not renewed any more; the
        /// store keeps it for the rest of its TTL. [`Held::lost`](crate::Held::lost) and
        /// [`HeldSet::lost`](crate::HeldSet::lost) return it, and so does a
        /// [`Lock::run`](crate::Lock::run) in another runtime.
        RuntimeEnded => "the runtime that connected has ended, and nothing renews it",
        /// The lock's entry vanished from the store: revoked by an operator
        /// ([`Locks::revoke`](crate::Locks::revoke)), deleted, evicted, or flushed.
        EntryGone => "its entry was revoked, or vanished from the store",
        /// The store failed over, and the server that took over does not know the lock: its write
        /// was not replicated before.
        Failover => "the server that took over after a failover does not know it",
        /// The store has gone back to an earlier state: an older backup was restored, or confirmed
        /// writes were lost. It may have granted the lock to another client.
        Restored => "the store has gone back to an earlier state, as after a restore",
        /// The lock was detached, and its ticket has been used: another client adopted it.
        Adopted => "its ticket has been used: another client adopted it",
        /// The lock was detached, and is not there any more: it was not adopted before its TTL was
        /// over, an operator revoked it or raised the token floor above its token, or its adopter
        /// released it.
        TicketOver =>
            "its ticket is over: it was not adopted within its TTL, or was revoked or released",
    }
}
