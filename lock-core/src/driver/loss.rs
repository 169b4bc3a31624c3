//! How a lock can be lost.

use std::fmt;

/// How a lock was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LossReason {
    /// The holder's own deadline passed: renewals failed, hung, or came too late.
    Expired,
    /// A fixed term was over.
    TermOver,
    /// The maximum hold time was over.
    MaxHold,
    /// The caller did not poll its acquire for one TTL after the grant, so the lock was given back.
    NotCollected,
    /// The store ended the holder's session.
    SessionEnded,
    /// [`Locks::close`](crate::Locks::close) was called here, and gave the lock back. It is a
    /// release, reported as a loss to work that still runs under the lock.
    Closed,
    /// The tokio runtime that connected has ended, so the lock is not renewed any more; the store
    /// keeps it for the rest of its TTL. [`Held::lost`](crate::Held::lost) and
    /// [`HeldSet::lost`](crate::HeldSet::lost) return it, and so does a
    /// [`Lock::run`](crate::Lock::run) in another runtime.
    RuntimeEnded,
    /// The lock's entry vanished from the store: revoked by an operator
    /// ([`Locks::revoke`](crate::Locks::revoke)), deleted, evicted, or flushed.
    EntryGone,
    /// The store failed over, and the server that took over does not know the lock: its write was
    /// not replicated before.
    Failover,
    /// The store has gone back to an earlier state: an older backup was restored, or confirmed
    /// writes were lost. It may have granted the lock to another client.
    Restored,
    /// The lock was detached, and its ticket has been used: another client adopted it.
    Adopted,
    /// The lock was detached, and is not there any more: it was not adopted before its TTL was
    /// over, an operator revoked it or raised the token floor above its token, or its adopter
    /// released it.
    TicketOver,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "it could not be renewed before its deadline",
            Self::TermOver => "its fixed term was over",
            Self::MaxHold => "its maximum hold time was over",
            Self::NotCollected => "its acquire was not polled for one TTL after the grant",
            Self::SessionEnded => "the store ended the session",
            Self::Closed => "its connection was closed here, and gave it back",
            Self::RuntimeEnded => "the runtime that connected has ended, and nothing renews it",
            Self::EntryGone => "its entry was revoked, or vanished from the store",
            Self::Failover => "the server that took over after a failover does not know it",
            Self::Restored => "the store has gone back to an earlier state, as after a restore",
            Self::Adopted => "its ticket has been used: another client adopted it",
            Self::TicketOver => {
                "its ticket is over: it was not adopted within its TTL, or was revoked or released"
            }
        })
    }
}
