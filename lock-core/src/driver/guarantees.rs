//! The promises of a store, as values that a program can check.

use std::{fmt, ops::RangeInclusive, time::Duration};

use crate::{
    Error, FencingToken, LockKind, Overlap, Requirement, Result,
    driver::{duration::shown, worded::worded},
    keep::{
        errors::{invalid, unsupported},
        limits,
    },
};

/// The promises of a store about its locks, as it is deployed and configured. A driver asks the
/// store when it connects, so a single etcd node does not promise what a cluster of three promises.
/// Later changes are not seen before the next connect.
///
/// The executable properties check these against the real store.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Guarantees {
    /// The store's name: `sqlite`, `etcd`, `redis`, `zookeeper`, `postgres`, `mysql`, `memory`; for
    /// another driver, its own name.
    pub store: &'static str,
    /// Which kinds of locks there are. All stores have the exclusive one.
    pub kinds: &'static [LockKind],
    /// Which faults of the store a held lock survives.
    pub survives: Survives,
    /// In which ways a holder may notice its loss only after the next grant.
    pub overlaps: Vec<Overlap>,
    /// How many jumps of clocks let a second holder in, if several servers vote for a holder and each
    /// ends its vote by its own clock. Then [`Overlap::ClockJump`] takes that many.
    pub clock_jumps: Option<ClockJumps>,
    /// In which order waiters are served.
    pub fairness: Fairness,
    /// How a waiter learns that it is its turn.
    pub wake: Wake,
    /// How strictly fencing tokens rise, and where they come from.
    pub fencing: Fencing,
    /// No token is ever greater. Below 2^63 on every store, so that all tokens fit a signed
    /// `BIGINT`; on Redis below 2^53, the limit up to which its scripts count exactly.
    pub greatest_token: FencingToken,
    /// How a holder learns that it lost the lock, besides its own deadline, which exists on every
    /// store.
    pub loss: LossSignal,
    /// Which side ends a fixed term.
    pub fixed_term: FixedTerm,
    /// The TTLs that can be asked for.
    pub ttl: RangeInclusive<Duration>,
    /// The TTL of a lock whose builder names none. Also settable as `ttl` in the URL.
    pub default_ttl: Duration,
    /// How much later than the TTL the store may notice that a holder is gone.
    pub expiry_slack: Duration,
    /// The greatest number of names of a [`LockSet`](crate::LockSet) that one request takes, if all
    /// are free. Larger sets, and sets with a name that is not free, are taken one name after the
    /// other; on etcd, Redis and ZooKeeper also a set with a shared lock.
    pub names_at_once: usize,
    /// Whether an exclusive lock can be detached for another process: see
    /// [`LockGuard::detach`](crate::LockGuard::detach).
    pub detach: bool,
    /// What loses the [mark](crate::Mark) of work that is done once per period, so that the work is
    /// done again; a store that is new, or restored from a backup, has none of its marks in any
    /// case. `None` if the store keeps no marks.
    pub marks: Option<&'static str>,
    /// Why the store has no other kinds, if there is a reason beyond its driver.
    pub no_other_kinds: Option<&'static str>,
    /// What was found at connect that weakens locks or their speed: a setting, a version, a role.
    /// Each is a sentence that says what to do. [`trace`](crate::trace) has each as `caution`.
    pub cautions: Vec<String>,
}

impl Guarantees {
    /// The least promises: a driver raises the ones that its store keeps.
    ///
    /// Defaults: survives nothing, every overlap, no order, polling, no fencing, tokens below 2^63,
    /// loss by deadline only, a fixed term ended by the client, TTL 2 s to 1 h (default 15 s), no
    /// slack, no names at once, no detaching, no marks, no votes, no cautions.
    pub fn least(store: &'static str) -> Self {
        Self {
            store,
            kinds: &[LockKind::Exclusive],
            survives: Survives::default(),
            overlaps: Overlap::ALL.to_vec(),
            clock_jumps: None,
            fairness: Fairness::None,
            wake: Wake::Poll,
            fencing: Fencing::None,
            greatest_token: FencingToken::new(i64::MAX.unsigned_abs()),
            loss: LossSignal::Deadline,
            fixed_term: FixedTerm::Client,
            ttl: Duration::from_secs(2)..=Duration::from_secs(3600),
            default_ttl: limits::DEFAULT_TTL,
            expiry_slack: Duration::ZERO,
            names_at_once: 0,
            detach: false,
            marks: None,
            no_other_kinds: None,
            cautions: Vec::new(),
        }
    }

    /// Checks that the store keeps this TTL exactly.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] with the range.
    pub fn check_ttl(&self, ttl: Duration) -> Result<()> {
        if self.ttl.contains(&ttl) {
            return Ok(());
        }
        let (least, most) = (shown(*self.ttl.start()), shown(*self.ttl.end()));
        Err(invalid("ttl", shown(ttl), format!("{} takes {least} to {most} here", self.store)))
    }

    /// Checks that the store has this kind of lock.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`].
    pub(crate) fn check_kind(&self, kind: LockKind) -> Result<()> {
        if self.kinds.contains(&kind) {
            return Ok(());
        }
        let why = self.no_other_kinds.map(|why| format!(": {why}")).unwrap_or_default();
        Err(unsupported(self.store, format!("keep {kind}{why}")))
    }

    /// Checks that the store keeps [marks](crate::Mark).
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`].
    pub(crate) fn check_marks(&self) -> Result<()> {
        match self.marks {
            Some(_) => Ok(()),
            None => Err(unsupported(self.store, "keep marks of work that is done, in this mode")),
        }
    }

    /// Checks that the store keeps marks, and that work can be marked as done for this period.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`]; [`Error::InvalidOption`] with the range.
    #[doc(hidden)]
    pub fn check_period(&self, period: Duration) -> Result<()> {
        self.check_marks()?;
        match limits::PERIODS.contains(&period) {
            true => Ok(()),
            false => Err(invalid("once_per", shown(period), "1 ms to 3660 days")),
        }
    }

    /// The greatest number that the [token floor](crate::TokenFloor) can be raised to: half of
    /// [`greatest_token`](Self::greatest_token), so that there is room for tokens above it.
    #[doc(hidden)]
    pub fn greatest_floor(&self) -> FencingToken {
        FencingToken::new(self.greatest_token.value().div_ceil(2))
    }

    /// Whether the store keeps this promise.
    pub fn meets(&self, requirement: Requirement) -> bool {
        match requirement {
            Requirement::Fifo => self.fairness == Fairness::Fifo,
            Requirement::Push => self.wake == Wake::Push,
            Requirement::Fencing => self.fencing != Fencing::None,
            Requirement::StrictFencing => matches!(self.fencing, Fencing::Strict(_)),
            Requirement::SurvivesRestart => self.survives.restart,
            Requirement::SurvivesFailover => self.survives.failover,
            Requirement::LossPush => self.loss == LossSignal::Push,
            Requirement::ServerTerm => self.fixed_term == FixedTerm::Server,
            Requirement::Detach => self.detach,
        }
    }

    /// Checks several requirements at once.
    ///
    /// # Errors
    ///
    /// [`Error::Unmet`] with all that is missing.
    pub fn require(&self, requirements: &[Requirement]) -> Result<()> {
        let missing: Vec<_> = requirements.iter().copied().filter(|r| !self.meets(*r)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::Unmet { store: self.store, missing })
    }
}

/// All promises in one line for people.
impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(ToString::to_string).collect();
        let survives = match (self.survives.restart, self.survives.failover) {
            (true, true) => "a restart and a failover",
            (true, false) => "a restart",
            (false, true) => "a failover",
            (false, false) => "no fault of the store",
        };
        let fencing = match self.fencing {
            Fencing::Strict(_) => "tokens that always rise",
            Fencing::BestEffort(_) => "tokens that rise as a best effort",
            Fencing::None => "no tokens",
        };
        let Self { store, fairness, wake, ttl, .. } = self;
        let kinds = kinds.join(", ");
        let (least, most) = (shown(*ttl.start()), shown(*ttl.end()));
        write!(
            f,
            "{store}: {kinds}; {fairness}, {wake}; {fencing}; a held lock survives {survives}; \
             TTL {least} to {most}"
        )?;
        match self.clock_jumps {
            Some(jumps) => write!(f, "; jumps of clocks that let a second holder in: {jumps}"),
            None => Ok(()),
        }
    }
}

/// Which faults of the store a held lock survives, so that no other client is granted meanwhile. As
/// deployed: a single node survives no failover, whatever its kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Survives {
    /// The server's process dies and starts again with its data.
    pub restart: bool,
    /// Any one node dies and another takes over, with every write that was confirmed. Needs at
    /// least three nodes.
    pub failover: bool,
}

/// How many servers' clocks must jump forward before a second holder can get in, where servers vote
/// for a holder. Each jump ends a vote early, and a second holder needs a majority of votes.
///
/// `Display` lists the numbers: `1 with 3 of 5 votes, 2 with 4, 3 with 5`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ClockJumps {
    /// The number of servers.
    pub servers: usize,
    /// The number of votes that a holder needs.
    pub quorum: usize,
}

impl ClockJumps {
    /// Servers that vote, and the number of votes that a holder needs.
    pub const fn new(servers: usize, quorum: usize) -> Self {
        Self { servers, quorum }
    }

    /// Returns the number of jumps that break a lock with this many votes. One jump breaks a lock
    /// with exactly a quorum if the number of servers is odd; each vote beyond it carries one more.
    ///
    /// ```
    /// use lock_core::ClockJumps;
    ///
    /// let five = ClockJumps::new(5, 3);
    /// assert_eq!([3, 4, 5].map(|votes| five.that_break(votes)), [1, 2, 3]);
    /// ```
    pub const fn that_break(&self, votes: usize) -> usize {
        // A second holder can have the votes that the first one lacks without any jump.
        (votes + self.quorum).saturating_sub(self.servers)
    }
}

impl fmt::Display for ClockJumps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, of) = (self.quorum, self.servers);
        write!(f, "{} with {least} of {of} votes", self.that_break(least))?;
        let mut more = least + 1..=of;
        more.try_for_each(|votes| write!(f, ", {} with {votes}", self.that_break(votes)))
    }
}

worded! {
    /// In which order waiters are served.
    pub enum Fairness {
        /// First come, first served.
        Fifo => "first come, first served",
        /// The next grant goes to any waiter that asks at the right moment.
        None => "in no order",
    }
}

worded! {
    /// How a waiter learns that it is its turn.
    pub enum Wake {
        /// The store notifies exactly one waiter per release.
        Push => "woken by a push",
        /// Every waiter asks from time to time.
        Poll => "by polling",
    }
}

/// How strictly fencing tokens rise, and where they come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Fencing {
    /// Always: also after a release, expiry, deletion of the lock's keys and a server restart.
    Strict(&'static str),
    /// Always, except in the case that the text names.
    BestEffort(&'static str),
    /// No usable tokens.
    None,
}

/// How a holder learns that it lost the lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LossSignal {
    /// By its own deadline, and when a renewal is refused.
    Deadline,
    /// Also by a message of the store, within about 100 ms; on ZooKeeper within about a second if a
    /// session has more entries than it can watch, some 1,000.
    Push,
}

/// Which side ends a fixed term (of a lock that is not renewed).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FixedTerm {
    /// The server, by expiry: it ends on time even if the holder fails.
    Server,
    /// The holder, by deleting its entry. If it crashes first, the lock is free after the TTL of
    /// its shared session.
    Client,
}
