//! Deliberately broken locks. Each has one defect, which exactly one executable property rejects.
//! The store calls [`Hooks`] to apply its defects.

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use lock_core::{Entry, FencingToken, Holder, Instant, Kind, LockName, Request, Wait};
use uuid::Uuid;

use crate::store::entry::{Stored, place_of};

/// Declares the defects, each with the property that rejects it.
macro_rules! defects {
    ($($(#[doc = $doc:literal])+ $defect:ident: $property:literal,)+) => {
        /// The defect of a broken store, or of its driver.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[cfg_attr(
            not(feature = "properties"),
            allow(dead_code, unreachable_pub, reason = "not exported, and nobody can ask for one")
        )]
        #[non_exhaustive]
        pub enum Defect {
            $($(#[doc = $doc])+
            #[doc = concat!(" Rejected by `", $property, "`.")]
            $defect,)+
        }

        #[cfg(feature = "properties")]
        impl Defect {
            /// All defects, each with the property that rejects it.
            pub const ALL: [(Self, &'static str); 24] = [$((Self::$defect, $property)),+];
        }
    };
}

defects! {
    /// With many waiters of several clients, two are granted at once.
    GrantsTwoOfACrowd: "mutual_exclusion",
    /// A holder that crashed never expires.
    KeepsCrashedHolders: "liveness",
    /// A release removes the holder's entry of a short TTL, also if it is another attempt's.
    ReleasesByName: "symmetry",
    /// Deleting a lock's keys restarts the tokens.
    RestartsTokens: "fencing",
    /// A grant of a short TTL is kept and renewed although its caller has left.
    KeepsGrantsOfTheDeparted: "cancellation",
    /// A holder believes in its lock for twice its TTL.
    TellsTooLate: "loss",
    /// The last waiter is served first.
    ServesTheLastFirst: "fairness",
    /// `try_acquire` waits a while.
    TriesForAWhile: "try_acquire",
    /// Names that differ in case are one lock.
    FoldsCase: "names",
    /// Waiters do not survive a restart, and get no push.
    ForgetsWaitersInARestart: "reconnect",
    /// Only the first renewals are sent.
    StopsRenewing: "renewal",
    /// A wait in vain does not name the holder.
    HidesTheHolder: "timeouts",
    /// A holder whose lock is revoked gets no push.
    RevokesInSilence: "operators",
    /// A request of a lock that is sent again makes a second entry.
    EntersTwice: "lost_answers",
    /// A grant that its caller did not collect is kept for ever after it is given back.
    KeepsTheUncollected: "unpolled",
    /// The caller does not learn that its attempt waits in the store.
    WaitsInSilence: "vain_waits",
    /// Readers enter although a writer with a short TTL waits before them.
    LetsReadersPass: "sharing",
    /// An upgrade that is sent again gets another token.
    UpgradesAnew: "conversions",
    /// A holder of many permits counts as one, if there are few.
    CountsHoldersInsteadOfPermits: "permits",
    /// If not all locks of a set are free, it keeps the free ones, and refuses the set.
    KeepsPartsOfSets: "sets",
    /// The new values of a leader with a short TTL are discarded.
    ProclaimsNothing: "election",
    /// A reader is reported as the leader.
    LetsReadersLead: "observers",
    /// A ticket may be used again and again.
    AdoptsTwice: "detach",
    /// Work is marked as done although its lock is lost.
    MarksAfterALoss: "once",
}

/// The points where a store with a defect differs. Without a defect each method returns the right
/// value, and changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hooks(Option<Defect>);

impl Hooks {
    #[cfg(feature = "properties")]
    pub(crate) fn of(defect: Defect) -> Self {
        Self(Some(defect))
    }

    pub(crate) fn has(self, defect: Defect) -> bool {
        self.0 == Some(defect)
    }

    /// Returns the name whose queue is used.
    pub(crate) fn name(self, name: &LockName) -> Cow<'_, LockName> {
        let folded = || LockName::new(name.as_str().to_ascii_lowercase()).ok();
        let folded = self.has(Defect::FoldsCase).then(folded).flatten();
        folded.map_or(Cow::Borrowed(name), Cow::Owned)
    }

    pub(crate) fn before_expiry(self, entry: &mut Stored, now: Instant) {
        let crashed = entry.network.now().crashed;
        if self.has(Defect::KeepsCrashedHolders)
            && entry.kind == Kind::Exclusive
            && entry.value.is_none()
            && entry.granted.is_some_and(|grant| crashed > Some(grant.at))
        {
            entry.expires = now + entry.ttl;
        }
    }

    pub(crate) fn before_grants(self, entries: &mut VecDeque<Stored>) {
        let free = entries.front().is_some_and(|first| first.granted.is_none());
        let reverses = self.has(Defect::ServesTheLastFirst) && free && entries.len() > 2;
        if reverses && all_exclusive(entries) {
            entries.make_contiguous().reverse();
        }
    }

    /// Returns whether the second of the queue is granted beside the first.
    pub(crate) fn grants_beside_the_first(self, entries: &VecDeque<Stored>) -> bool {
        self.has(Defect::GrantsTwoOfACrowd)
            && entries.len() > 7
            && clients(entries) > 2
            && all_exclusive(entries)
    }

    /// Returns the kind as which an entry counts.
    pub(crate) fn counted(self, kind: Kind) -> Kind {
        match kind {
            Kind::Permit { limit: limit @ ..4, .. }
                if self.has(Defect::CountsHoldersInsteadOfPermits) =>
            {
                Kind::Permit { weight: 1, limit }
            }
            kind => kind,
        }
    }

    /// Returns whether the entries behind this one do not wait for it.
    pub(crate) fn is_overtaken(self, entry: &Stored) -> bool {
        let passed = self.has(Defect::LetsReadersPass) && is_short(entry.ttl);
        let passed = passed && entry.granted.is_none();
        passed && entry.kind == Kind::Exclusive
    }

    pub(crate) fn before_deletion(self, last_token: &mut u64) {
        if self.has(Defect::RestartsTokens) {
            *last_token = 0;
        }
    }

    #[cfg(feature = "properties")]
    pub(crate) fn outlives_a_restart(self, entry: &Stored) -> bool {
        !self.has(Defect::ForgetsWaitersInARestart) || entry.granted.is_some()
    }

    /// Returns the place of the entry that an attempt's release removes.
    pub(crate) fn released(self, entries: &VecDeque<Stored>, attempt: Uuid) -> Option<usize> {
        let first = entries.front().filter(|first| is_short(first.ttl)).map(|_| 0);
        place_of(entries, attempt).or(first.filter(|_| self.has(Defect::ReleasesByName)))
    }

    pub(crate) fn published(self, mine: &mut Stored, value: &[u8]) {
        if !self.has(Defect::ProclaimsNothing) || !is_short(mine.ttl) {
            mine.value = Some(value.into());
        }
    }

    /// Returns whether the attempt keeps its grant although its caller has left.
    pub(crate) fn keeps_of_the_departed(self, ttl: Duration) -> bool {
        self.has(Defect::KeepsGrantsOfTheDeparted) && is_short(ttl)
    }

    /// Returns whether a request makes an entry although the attempt has one.
    pub(crate) fn enters_twice(self, request: &Request, known: bool) -> bool {
        let is_lock = request.wait == Wait::Queue && request.value.is_none();
        self.has(Defect::EntersTwice) && is_lock && !known
    }

    /// Returns whether a shared entry may lead.
    pub(crate) fn leads(self, kind: Kind) -> bool {
        kind == Kind::Exclusive || kind == Kind::Shared && self.has(Defect::LetsReadersLead)
    }

    /// Returns whether an entry may be adopted: one of these attempts has it.
    pub(crate) fn may_adopt(self, entry: &Stored, by: [Uuid; 2]) -> bool {
        by.contains(&entry.attempt) || self.has(Defect::AdoptsTwice)
    }

    /// Returns the token of a mark; `None` without a grant.
    pub(crate) fn marked_with(self, granted: Option<FencingToken>) -> Option<FencingToken> {
        granted.or(self.has(Defect::MarksAfterALoss).then_some(FencingToken::new(0)))
    }

    /// Returns an entry as operators see it.
    pub(crate) fn shown(self, mut entry: Entry) -> Entry {
        if self.has(Defect::HidesTheHolder) {
            entry.holder = Holder::default();
        }
        entry
    }
}

/// Returns whether this may be a TTL of a check that waits for an expiry. Some defects do not
/// concern other locks, which other properties use.
fn is_short(ttl: Duration) -> bool {
    ttl <= Duration::from_secs(2)
}

fn all_exclusive(entries: &VecDeque<Stored>) -> bool {
    entries.iter().all(|entry| entry.kind == Kind::Exclusive)
}

/// Returns how many clients have entries in a queue.
fn clients(entries: &VecDeque<Stored>) -> usize {
    let mut channels: Vec<&Stored> = Vec::new();
    for entry in entries {
        if !channels.iter().any(|known| known.tell.same_channel(&entry.tell)) {
            channels.push(entry);
        }
    }
    channels.len()
}
