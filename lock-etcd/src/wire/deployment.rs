//! The deployment: the version of etcd and the size of its cluster, and what follows from these.

use lock_core::Overlap;

use crate::wire::member::Member;

/// The facts that the member in use reported about itself and its cluster, as far as the login may
/// know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    version: Option<Version>,
    /// Number of voting members.
    voters: Option<usize>,
}

/// Major, minor, patch.
type Version = (u32, u32, u32);

/// Asks for the facts in one round. A fact that is refused or fails is unknown.
pub(crate) async fn ask(member: &Member) -> Server {
    let (mut maintenance, mut cluster) =
        (member.client.maintenance_client(), member.client.cluster_client());
    let (status, members) = tokio::join!(maintenance.status(), cluster.member_list());
    Server {
        version: status.ok().and_then(|status| version(status.version())),
        voters: members.ok().map(|list| list.members().iter().filter(|m| !m.is_learner()).count()),
    }
}

fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split(['.', '-', '+']).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

impl Server {
    /// Whether the loss of any one member leaves a majority.
    pub(crate) fn survives_failover(&self) -> bool {
        self.voters.is_some_and(|voters| voters >= 3)
    }

    /// Whether the version is older than the first patches of 3.4 and 3.5 with a correction. An
    /// unknown version counts as old.
    fn is_before(&self, patch_of_3_4: u32, patch_of_3_5: u32) -> bool {
        match self.version {
            None => true,
            Some((3, 5, patch)) => patch < patch_of_3_5,
            Some(version) => version < (3, 4, patch_of_3_4),
        }
    }

    /// Whether leases follow the wall clock: 3.5 and newer measure them by a monotonic clock.
    fn follows_wall_clock(&self) -> bool {
        self.version.is_none_or(|version| version < (3, 5, 0))
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

    /// Returns the known faults of this version that concern locks.
    pub(crate) fn cautions(&self) -> Vec<&'static str> {
        if self.version.is_none() {
            return Vec::new();
        }
        let faults = [
            (
                self.revokes_early(),
                "a leader that stalled may revoke living leases, and confirm keep-alives of dead ones, \
                 after it stepped down (etcd issue 15247; corrected in 3.4.31 and 3.5.13)",
            ),
            (
                self.follows_wall_clock(),
                "leases follow the wall clock of the leader (corrected in 3.5.0)",
            ),
            (
                self.is_before(32, 14),
                "the revision may go back after a crash during a compaction, and fencing tokens with \
                 it (etcd issue 17780; corrected in 3.4.32 and 3.5.14)",
            ),
        ];
        faults.iter().filter(|(concerns, _)| *concerns).map(|(_, why)| *why).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str, voters: usize) -> Server {
        Server { version: version(text), voters: Some(voters) }
    }

    #[test]
    fn each_version_has_the_faults_that_its_changelog_says() {
        for (text, faults) in [
            ("3.4.23", 3),
            ("3.4.30", 3),
            ("3.4.31", 2),
            ("3.4.45", 1),
            ("3.5.0", 2),
            ("3.5.12", 2),
            ("3.5.13", 1),
            ("3.5.14", 0),
            ("3.6.0-rc.1", 0),
            ("4.0.0", 0),
        ] {
            assert_eq!(server(text, 3).cautions().len(), faults, "{text}");
        }
        assert!(server("none", 3).cautions().is_empty());
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
}
