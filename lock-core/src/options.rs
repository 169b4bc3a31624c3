//! The options that every kind of lock has.

/// Builder methods for a type that has a [`Lock`](crate::Lock), which `$lock` leads to.
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
        /// another one if a grant of the last moment is on its way. Zero tries once. Default: for
        /// ever.
        pub fn wait(mut $self, limit: std::time::Duration) -> Self {
            $lock.wait = Some(limit);
            $self
        }

        /// Does not renew: the lock ends one TTL after it was granted, or renewed by hand. Default:
        /// the watchdog renews it until it is released.
        pub fn fixed_term(mut $self) -> Self {
            $lock.request.term = $crate::Term::Fixed;
            $self
        }

        /// Ends the hold after this time whatever the watchdog does, so that a task which hangs
        /// cannot hold the lock for ever. Counts from the grant. Default: no limit.
        pub fn max_hold(mut $self, limit: std::time::Duration) -> Self {
            $lock.max_hold = Some(limit);
            $self
        }

        /// What others see as the holder while they wait. Default: program, process id and host.
        pub fn holder(mut $self, description: impl AsRef<str>) -> Self {
            $lock.request.holder = description.as_ref().into();
            $self
        }
    };
}
pub(crate) use options;
