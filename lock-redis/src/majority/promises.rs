//! What a majority of independent servers promises.

use lock_core::{Fencing, FencingToken, FixedTerm, Guarantees, Overlap, Survives};

use super::config::RedlockConfig;

/// The store's name in errors and guarantees.
pub(super) const STORE: &str = "redlock";

/// Why there are no other kinds.
const ONLY_EXCLUSIVE: &str = "votes carry over to one holder only: N servers with C permits each \
                              would let in N * C / majority holders";

/// When tokens may fail to rise.
const FENCING: &str = "unless fewer than a majority of the servers still have the name's last \
                       token (lost data, or a day since the last grant) and the clock of the next \
                       holder's machine is behind it";

/// Returns the promises of a configuration.
pub(super) fn guarantees(config: &RedlockConfig) -> Guarantees {
    let mut guarantees = Guarantees::least(STORE);
    guarantees.no_other_kinds = Some(ONLY_EXCLUSIVE);
    // Of a minority of the servers.
    let mut survives = Survives::default();
    (survives.restart, survives.failover) = (true, true);
    guarantees.survives = survives;
    guarantees.overlaps = vec![Overlap::Revoked, Overlap::Deleted, Overlap::ClockJump];
    guarantees.fencing = Fencing::BestEffort(FENCING);
    // A number in a script is a double.
    guarantees.greatest_token = FencingToken::new((1 << 53) - 1);
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.ttl = config.ttls();
    guarantees.default_ttl = config.default_ttl();
    guarantees
}
