//! The options that every kind of lock has.

/// Builder methods for a type with a [`Lock`](crate::Lock), which `$lock` gives access to.
macro_rules! options {
    (|$self:ident| $lock:expr) => {
        /// How long the lock outlives its last renewal. Shorter frees it sooner after a crash;
        /// longer survives longer pauses and outages. Default: the store's
        /// [`default_ttl`](crate::Guarantees::default_ttl), usually 15 s.
        pub fn ttl(mut $self, ttl: std::time::Duration) -> Self {
            $lock.request.ttl = ttl;
            $self
        }

        /// Longest wait. May overrun by up to 1 s if the store is slow to name the holder, and by
        /// another 1 s if a grant of the last moment is on its way. Zero tries once. Default: for
        /// ever.
        pub fn wait(mut $self, limit: std::time::Duration) -> Self {
            $lock.wait = Some(limit);
            $self
        }

        /// Goes on waiting after an outage. Without it, a wait ends when the store was out of reach
        /// for one TTL ([`Unavailable`](crate::Error::Unavailable)), or this process was suspended
        /// for as long. With it, the wait acquires again, at the end of the line. It ends with all
        /// other errors, so never goes on after a revoke: that is
        /// [`PlaceLost`](crate::Error::PlaceLost) with
        /// [`EntryGone`](crate::LossReason::EntryGone), and so is a loss that the store does not
        /// explain. It ends a set, too, if the store ended the session of locks that the set had
        /// ([`SessionEnded`](crate::LossReason::SessionEnded)). A revoke during the outage or a
        /// failover is not noticed.
        ///
        /// The limit of [`wait`](Self::wait) is for all tries together. Before each new one it
        /// pauses for 100 ms to 2 s, less a random part of up to half, and emits the event
        /// `acquire_failed` of [`trace`](crate::trace). A lock that is *held* is lost in an outage
        /// as ever. Default: off.
        pub fn wait_through_outages(mut $self) -> Self {
            $lock.through_outages = true;
            $self
        }

        /// Does not renew: the lock ends one TTL after the grant, or after the last renewal by
        /// hand. Default: the watchdog renews it until it is released.
        pub fn fixed_term(mut $self) -> Self {
            $lock.request.term = $crate::Term::Fixed;
            $self
        }

        /// Ends the hold after this time, even if the watchdog renews it. So a task that hangs
        /// cannot hold the lock for ever. Counts from the grant. Default: no limit.
        pub fn max_hold(mut $self, limit: std::time::Duration) -> Self {
            $lock.max_hold = Some(limit);
            $self
        }

        /// Holds the lock at least this long, even if it is given back earlier: clients that come
        /// late for a short job find it taken. Counts from the grant. If there is a
        /// [`max_hold`](Self::max_hold) or a [`fixed_term`](Self::fixed_term), this time must end a
        /// margin (50 ms or a twentieth of the TTL, whichever is longer) before that does; a fixed
        /// term's hold ends a margin before its TTL. Default: zero.
        ///
        /// Only giving the lock back waits, and only until then:
        ///
        /// - `release()`, `resign()` and `run()` return when the time is over and the store has
        ///   confirmed; [`Error::Lost`](crate::Error::Lost) if the lock was lost meanwhile, and so
        ///   held for less.
        /// - Dropping the guard, or the future of its release, does not wait: the lock is kept in
        ///   the background, renewed and then released. A loss meanwhile is traced.
        ///
        /// Meanwhile the guard's [`Held`](crate::Held) is still valid, and all other clients wait,
        /// also the lock's [`Owner`](crate::Owner). [`Locks::close`](crate::Locks::close) gives the
        /// lock back at once. If the process or the runtime of the connection ends, the lock is not
        /// renewed any more: it is free after its TTL, also before this time is over. A program
        /// that ends after its job waits for the release first.
        ///
        /// A grant that was not collected, and the parts of a set that was not acquired, are given
        /// back at once.
        pub fn at_least(mut $self, time: std::time::Duration) -> Self {
            $lock.at_least = time;
            $self
        }

        /// A description of the client, for people. [`WaitTimeout`](crate::Error::WaitTimeout) and
        /// [`inspect`](crate::Locks::inspect) show it for a holder and for a waiter, and
        /// [`Leader::holder`](crate::Leader::holder) for a leader. The value of a
        /// [`campaign`](crate::Election::campaign) is separate; none of these shows it. At most 64
        /// KiB. Default: program, process id and host.
        pub fn holder(mut $self, description: impl AsRef<str>) -> Self {
            $lock.request.holder = description.as_ref().into();
            $self
        }

        /// Adds the name to the labels of its metrics: for a few names that are known beforehand. A
        /// label with a name for each order makes as many time series, which no metrics store
        /// keeps. Default: the labels are the store and the kind.
        #[cfg(feature = "metrics")]
        pub fn name_in_metrics(mut $self) -> Self {
            $lock.request.named = true;
            $self
        }
    };
}
pub(crate) use options;
