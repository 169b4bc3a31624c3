//! What a majority of independent servers promises.

use std::sync::Arc;

use lock_core::{ClockJumps, Fencing, FencingToken, FixedTerm, Guarantees, Overlap, Survives};

use super::{config::RedlockConfig, node::Node, tally::quorum};
use crate::{config::TTL, wire::info::Info};

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
    let servers = config.nodes.len();
    guarantees.clock_jumps = Some(ClockJumps::new(servers, quorum(servers)));
    guarantees.fencing = Fencing::BestEffort(FENCING);
    // A number in a script is a double.
    guarantees.greatest_token = FencingToken::new((1 << 53) - 1);
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.ttl = *TTL.start()..=config.longest_ttl();
    guarantees.default_ttl = config.default_ttl();
    guarantees
}

/// Returns what weakens locks: settings of the servers that are connected, and their number.
pub(super) fn cautions(nodes: &[Arc<Node>]) -> Vec<String> {
    let known = |node: &Arc<Node>| {
        let connection = node.connection().ok()?;
        Some((node.address.to_string(), connection.info.clone()))
    };
    of_known(nodes.len(), &nodes.iter().filter_map(known).collect::<Vec<_>>())
}

fn of_known(nodes: usize, known: &[(String, Info)]) -> Vec<String> {
    let mut cautions = Vec::new();
    for (node, info) in known {
        if let Some(policy) = info.evicts() {
            cautions.push(format!(
                "maxmemory-policy of {node} is {policy}: when its memory is full, it deletes votes \
                 and tokens; set maxmemory-policy noeviction"
            ));
        }
    }
    let forget = known.iter().filter(|(_, info)| info.keeps_data() == Some(false)).count();
    if forget >= quorum(nodes) {
        cautions.push(format!(
            "appendonly is no on {forget} of {nodes} servers: when they all restart, the last \
             tokens are lost, and only the clients' clocks keep tokens rising; set appendonly yes"
        ));
    }
    if nodes.is_multiple_of(2) {
        cautions.push(format!(
            "there are {nodes} servers: they carry no more outages than {} would; use an odd \
             number",
            nodes - 1
        ));
    }
    cautions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_weaken_locks_are_told() {
        let info = |text: &str| ("h:1".to_owned(), text.into());
        let good = info("maxmemory_policy:noeviction\naof_enabled:1\n");
        let bad = info("maxmemory_policy:allkeys-lru\naof_enabled:0\n");
        assert_eq!(of_known(3, &[good.clone(), good.clone(), good.clone()]), Vec::<String>::new());
        let found = of_known(4, &[bad.clone(), bad.clone(), bad, good]);
        for (caution, word) in found.iter().zip(["lru", "lru", "lru", "appendonly", "odd number"]) {
            assert!(caution.contains(word), "{caution}");
        }
        assert_eq!(found.len(), 5);
    }
}
