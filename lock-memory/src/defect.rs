//! Deliberately broken locks. Each has one defect, which exactly one executable property rejects.

/// What is wrong with a broken store, or with its driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "properties"), allow(dead_code, reason = "nobody can ask for one"))]
#[cfg_attr(not(feature = "properties"), allow(unreachable_pub, reason = "not exported then"))]
#[non_exhaustive]
pub enum Defect {
    /// With many waiters of several clients, two are granted at once. Rejected by
    /// `mutual_exclusion`.
    GrantsTwoOfACrowd,
    /// A holder that crashed never expires. Rejected by `liveness`.
    KeepsCrashedHolders,
    /// A release removes the holder's entry, whoever it is. Rejected by `symmetry`.
    ReleasesByName,
    /// Deleting a lock's keys restarts the tokens. Rejected by `fencing`.
    RestartsTokens,
    /// A grant whose caller has left is kept and renewed. Rejected by `cancellation`.
    KeepsGrantsOfTheDeparted,
    /// A holder believes in its lock for twice its TTL. Rejected by `loss`.
    TellsTooLate,
    /// The last waiter is served first. Rejected by `fairness`.
    ServesTheLastFirst,
    /// `try_acquire` waits a while. Rejected by `try_acquire`.
    TriesForAWhile,
    /// Names that differ in case are one lock. Rejected by `names`.
    FoldsCase,
    /// Waiters do not survive a restart, and nobody tells them. Rejected by `reconnect`.
    ForgetsWaitersInARestart,
    /// Only the first renewals are sent. Rejected by `renewal`.
    StopsRenewing,
    /// Readers enter although a writer waits before them. Rejected by `sharing`.
    LetsReadersPass,
    /// A holder of many permits counts as one. Rejected by `permits`.
    CountsHoldersInsteadOfPermits,
    /// Of a set of which not all are free, it takes what it can, and says no. Rejected by `sets`.
    KeepsPartsOfSets,
    /// Whose lock is revoked is not told. Rejected by `operators`.
    RevokesInSilence,
    /// A leader's new values are thrown away. Rejected by `election`.
    ProclaimsNothing,
    /// A wait in vain does not say who holds the lock. Rejected by `timeouts`.
    HidesTheHolder,
    /// A grant that is given back because nobody collected it is kept and renewed. Rejected by
    /// `unpolled`.
    KeepsTheUncollected,
    /// Nobody is told that the store has answered that an attempt waits. Rejected by `vain_waits`.
    WaitsInSilence,
    /// A ticket may be used again and again. Rejected by `detach`.
    AdoptsTwice,
}

#[cfg(feature = "properties")]
impl Defect {
    /// Every defect with the property that rejects it.
    pub const ALL: [(Self, &'static str); 20] = [
        (Self::GrantsTwoOfACrowd, "mutual_exclusion"),
        (Self::KeepsCrashedHolders, "liveness"),
        (Self::ReleasesByName, "symmetry"),
        (Self::RestartsTokens, "fencing"),
        (Self::KeepsGrantsOfTheDeparted, "cancellation"),
        (Self::TellsTooLate, "loss"),
        (Self::ServesTheLastFirst, "fairness"),
        (Self::TriesForAWhile, "try_acquire"),
        (Self::FoldsCase, "names"),
        (Self::ForgetsWaitersInARestart, "reconnect"),
        (Self::StopsRenewing, "renewal"),
        (Self::HidesTheHolder, "timeouts"),
        (Self::RevokesInSilence, "operators"),
        (Self::KeepsTheUncollected, "unpolled"),
        (Self::WaitsInSilence, "vain_waits"),
        (Self::LetsReadersPass, "sharing"),
        (Self::CountsHoldersInsteadOfPermits, "permits"),
        (Self::KeepsPartsOfSets, "sets"),
        (Self::ProclaimsNothing, "election"),
        (Self::AdoptsTwice, "detach"),
    ];
}
