//! The deployment: the version of etcd and the size of its cluster, and what follows from these.

use lock_core::Overlap;

use crate::wire::{cautions, member::Member, version::Version};

/// The facts that the member in use reported about itself and its cluster, as far as the login may
/// know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    version: Option<Version>,
    /// Number of voting members.
    voters: Option<usize>,
    /// Bytes of the database, and how many it may have. etcd tells the limit since 3.6.
    size: Option<(i64, i64)>,
}

/// Asks for the facts in one round. A fact that is refused or fails is unknown.
pub(crate) async fn ask(member: &Member) -> Server {
    let (mut maintenance, mut cluster) =
        (member.client.maintenance_client(), member.client.cluster_client());
    let (status, members) = tokio::join!(maintenance.status(), cluster.member_list());
    let status = status.ok();
    Server {
        version: status.as_ref().and_then(|status| Version::parse(status.version())),
        size: status.map(|status| (status.db_size(), status.db_size_quota())),
        voters: members.ok().map(|list| list.members().iter().filter(|m| !m.is_learner()).count()),
    }
}

impl Server {
    /// Whether a held lock survives the restart of a member.
    pub(crate) fn survives_restart(&self) -> bool {
        !cautions::may_lose(self.version, self.voters)
    }

    /// Whether it survives the loss of any one member, which leaves a majority.
    pub(crate) fn survives_failover(&self) -> bool {
        self.survives_restart() && self.voters.is_some_and(|voters| voters >= 3)
    }

    /// Whether the version is older than the first patches of 3.4 and 3.5 with a correction. An
    /// unknown version counts as old.
    fn is_before(&self, patch_of_3_4: u32, patch_of_3_5: u32) -> bool {
        self.version.is_none_or(|version| version.is_before(patch_of_3_4, patch_of_3_5))
    }

    /// Whether leases follow the wall clock: 3.5 and newer measure them by a monotonic clock.
    fn follows_wall_clock(&self) -> bool {
        self.is_before(u32::MAX, 0)
    }

    /// Whether a stalled leader may revoke leases early: etcd#15247, corrected by pull requests
    /// 17465 and 17425.
    fn revokes_early(&self) -> bool {
        self.is_before(31, 13)
    }

    /// Whether a read-only transaction crashes the member if the client leaves: etcd#14110 and
    /// #14891, corrected by pull requests 14149 and 14895.
    pub(crate) fn crashes_at_reads(&self) -> bool {
        self.is_before(23, 7)
    }

    /// Returns the ways in which a holder may learn of its loss late.
    pub(crate) fn overlaps(&self) -> Vec<Overlap> {
        let mut overlaps = vec![Overlap::Revoked, Overlap::Deleted, Overlap::SessionRevokedEarly];
        if self.follows_wall_clock() {
            overlaps.push(Overlap::ClockJump);
        }
        if self.revokes_early() {
            overlaps.push(Overlap::LeaderStalled);
        }
        overlaps
    }

    /// Returns what is known to be wrong with it, as far as it concerns locks.
    pub(crate) fn cautions(&self) -> Vec<String> {
        let size = self.size.and_then(|(size, limit)| cautions::of_size(size, limit));
        cautions::of(self.version, self.voters).into_iter().chain(size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str, voters: usize) -> Server {
        Server { version: Version::parse(text), voters: Some(voters), size: None }
    }

    #[test]
    fn an_unknown_version_promises_no_more_than_an_old_one() {
        assert_eq!(server("none", 3).overlaps(), server("3.4.23", 3).overlaps());
        assert!(server("3.6.1", 3).overlaps().len() < server("3.4.23", 3).overlaps().len());
    }

    #[test]
    fn versions_that_crash_at_read_transactions_are_known() {
        let crashes = |text| server(text, 3).crashes_at_reads();
        assert!(crashes("3.4.22") && crashes("3.5.1") && crashes("none"));
        assert!(!crashes("3.4.23") && !crashes("3.5.7") && !crashes("3.6.0"));
    }

    #[test]
    fn a_majority_must_be_left() {
        assert!(!server("3.5.14", 1).survives_failover());
        assert!(!server("3.5.14", 2).survives_failover());
        assert!(server("3.5.14", 3).survives_failover());
        assert!(!Server::default().survives_failover());
    }

    #[test]
    fn a_version_that_may_lose_locks_promises_to_keep_none() {
        assert!(server("3.4.23", 1).survives_restart());
        assert!(!server("3.5.2", 3).survives_restart() && !server("3.5.2", 3).survives_failover());
        assert!(!server("none", 3).survives_restart());
    }
}
