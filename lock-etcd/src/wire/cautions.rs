//! What is deployed, and what is known to be wrong with it: faults of versions of etcd that concern
//! locks, too few members, and a database that is nearly full.

use std::fmt;

use lock_core::Overlap;

use crate::wire::member::Member;

/// Major, minor and patch.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Version(u32, u32, u32);

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', '-', '+']).map(|number| number.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??, numbers.next()??))
    }

    /// Whether it is older than these patches of 3.4 and 3.5, which have a correction.
    fn is_before(self, patch_of_3_4: u32, patch_of_3_5: u32) -> bool {
        match self {
            Self(3, 5, patch) => patch < patch_of_3_5,
            version => version < Self(3, 4, patch_of_3_4),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A fault, and the patches that correct it.
struct Fault {
    /// The first patches of 3.4 and 3.5 without it; `NEVER` if 3.4 keeps it, 0 if it never had it.
    corrected: (u32, u32),
    /// Whether only a cluster of one has it.
    alone: bool,
    /// Whether a held lock may be gone after a crash, or have two holders.
    loses: bool,
    /// How a holder may learn of its loss late because of it.
    overlap: Option<Overlap>,
    what: &'static str,
}

const NEVER: u32 = u32::MAX;

const NONE: Fault =
    Fault { corrected: (0, 0), alone: false, loses: false, overlap: None, what: "" };

const FAULTS: [Fault; 8] = [
    Fault {
        corrected: (0, 3),
        loses: true,
        what: "members may differ in their data after a crash, and a lock may then have two \
               holders (etcd issue 13766)",
        ..NONE
    },
    Fault {
        corrected: (0, 6),
        what: "members may differ in their revision after a crash while one defragments, and \
               fencing tokens with it (etcd pull request 14733)",
        ..NONE
    },
    Fault {
        corrected: (8, 0),
        loses: true,
        what: "members may differ in their data after a restart if logins are used (etcd pull \
               request 11652)",
        ..NONE
    },
    Fault {
        corrected: (22, 6),
        loses: true,
        what: "members may differ in their data if logins are used and one catches up by a \
               snapshot (etcd pull request 14648)",
        ..NONE
    },
    Fault {
        corrected: (21, 5),
        alone: true,
        loses: true,
        what: "a single member may lose what it has confirmed when it crashes, and locks with it \
               (etcd issue 14370)",
        ..NONE
    },
    Fault {
        corrected: (31, 13),
        what: "a leader that stalled may revoke living leases, and confirm keep-alives of dead \
               ones, after it stepped down (etcd issue 15247)",
        overlap: Some(Overlap::LeaderStalled),
        ..NONE
    },
    Fault {
        corrected: (32, 14),
        what: "the revision may go back after a crash during a compaction, and fencing tokens with \
               it (etcd issue 17780)",
        ..NONE
    },
    Fault {
        corrected: (NEVER, 0),
        what: "leases follow the wall clock of the leader, so a clock that is set forward ends \
               them early, and one that is set back keeps the locks of the dead",
        overlap: Some(Overlap::ClockJump),
        ..NONE
    },
];

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
        !FAULTS.iter().any(|fault| fault.loses && self.may_have(fault))
    }

    /// Whether it survives the loss of any one member, which leaves a majority.
    pub(crate) fn survives_failover(&self) -> bool {
        self.survives_restart() && self.voters.is_some_and(|voters| voters >= 3)
    }

    /// Whether it has a fault. What is unknown counts as faulty.
    fn may_have(&self, fault: &Fault) -> bool {
        let alone = self.voters.is_none_or(|voters| voters == 1);
        self.is_before(fault.corrected) && (alone || !fault.alone)
    }

    /// Whether the version is older than the first patches of 3.4 and 3.5 with a correction.
    fn is_before(&self, corrected: (u32, u32)) -> bool {
        self.version.is_none_or(|version| version.is_before(corrected.0, corrected.1))
    }

    /// Whether a read-only transaction crashes the member if the client leaves: etcd#14110 and
    /// #14891, corrected by pull requests 14149 and 14895.
    pub(crate) fn crashes_at_reads(&self) -> bool {
        self.is_before((23, 7))
    }

    /// Returns the ways in which a holder may learn of its loss late.
    pub(crate) fn overlaps(&self) -> Vec<Overlap> {
        let faults = FAULTS.iter().filter(|fault| self.may_have(fault));
        let always = [Overlap::Revoked, Overlap::Deleted, Overlap::SessionRevokedEarly];
        always.into_iter().chain(faults.filter_map(|fault| fault.overlap)).collect()
    }

    /// Returns a sentence for each fault, for too few voting members, and for a database that is
    /// nearly full. What is unknown is not reported.
    pub(crate) fn cautions(&self) -> Vec<String> {
        let is_known = |fault: &&Fault| !fault.alone || self.voters.is_some();
        let faults = FAULTS.iter().filter(|fault| self.may_have(fault)).filter(is_known);
        let faults = faults.filter_map(|fault| Some(sentence(self.version?, fault)));
        let size = self.size.and_then(|(size, limit)| of_size(size, limit));
        faults.chain(self.voters.and_then(too_few)).chain(size).collect()
    }
}

/// The size at which etcd refuses every write, if it is not told and not set.
const DEFAULT_LIMIT: i64 = 2 << 30;

/// Returns a sentence if the database has filled three quarters of its limit; 0 stands for etcd's
/// default. Without compaction locks alone fill it: etcd keeps every change.
fn of_size(size: i64, limit: i64) -> Option<String> {
    let limit = if limit > 0 { limit } else { DEFAULT_LIMIT };
    (size >= limit / 4 * 3).then(|| {
        let (size, limit) = (size >> 20, limit >> 20);
        format!(
            "etcd's database has {size} MB, and etcd refuses every write when it is full, at \
             {limit} MB unless set otherwise: set --auto-compaction-retention and --quota-backend-bytes, and \
             defragment it"
        )
    })
}

fn sentence(version: Version, fault: &Fault) -> String {
    let (of_3_4, of_3_5) = fault.corrected;
    let newer = match (version.0, version.1) == (3, 4) && of_3_4 != NEVER {
        true => format!("3.4.{of_3_4}"),
        false => format!("3.5.{of_3_5}"),
    };
    format!("etcd {version}: {}; take {newer} or newer", fault.what)
}

fn too_few(voters: usize) -> Option<String> {
    let members = match voters {
        1 => "etcd has a single member",
        2 => "etcd has two voting members",
        _ => return None,
    };
    Some(format!("{members}: nothing is granted while one is down; take three or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str, voters: usize) -> Server {
        Server { version: Version::parse(text), voters: Some(voters), size: None }
    }

    fn cautions(version: &str, voters: usize) -> Vec<String> {
        server(version, voters).cautions()
    }

    #[test]
    fn each_version_has_the_faults_that_its_changelog_says() {
        for (version, faults) in [
            ("3.4.7", 5),
            ("3.4.21", 4),
            ("3.4.23", 3),
            ("3.4.30", 3),
            ("3.4.31", 2),
            ("3.4.45", 1),
            ("3.5.0", 5),
            ("3.5.2", 5),
            ("3.5.3", 4),
            ("3.5.6", 2),
            ("3.5.12", 2),
            ("3.5.13", 1),
            ("3.5.14", 0),
            ("3.6.0-rc.1", 0),
            ("4.0.0", 0),
        ] {
            let found = cautions(version, 3);
            assert_eq!(found.len(), faults, "{version}: {found:#?}");
        }
    }

    #[test]
    fn a_caution_names_the_version_the_fault_and_the_first_version_without_it() {
        let found = cautions("3.5.1", 3).remove(0);
        let expected = "etcd 3.5.1: members may differ in their data after a crash, and a lock may \
                        then have two holders (etcd issue 13766); take 3.5.3 or newer";
        assert_eq!(found, expected);
        assert!(cautions("3.4.30", 3)[0].ends_with("take 3.4.31 or newer"));
        assert!(cautions("3.4.45", 3)[0].ends_with("take 3.5.0 or newer"));
    }

    #[test]
    fn few_members_are_reported() {
        let loses = |version| cautions(version, 1).iter().any(|why| why.contains("14370"));
        assert!(loses("3.4.20") && loses("3.5.4") && !loses("3.4.21") && !loses("3.5.5"));
        assert!(cautions("3.6.0", 1)[0].contains("a single member"));
        assert!(cautions("3.6.0", 2)[0].contains("two voting members"));
    }

    #[test]
    fn a_version_that_may_lose_a_lock_is_known() {
        let loses = |version, voters| !server(version, voters).survives_restart();
        assert!(loses("3.5.2", 3) && loses("3.4.21", 3) && loses("3.5.4", 1) && loses("none", 3));
        assert!(!loses("3.4.23", 1) && !loses("3.5.6", 3) && !loses("3.6.0", 1));
    }

    #[test]
    fn a_database_that_is_nearly_full_is_reported() {
        const GB: i64 = 1 << 30;
        assert!(of_size(GB, 0).is_none() && of_size(GB * 3 / 2, 8 * GB).is_none());
        assert!(of_size(GB * 3 / 2, 0).unwrap().contains("1536 MB"));
        assert!(of_size(7 * GB, 8 * GB).unwrap().contains("8192 MB"));
    }

    #[test]
    fn what_is_unknown_is_not_reported() {
        assert!(Server::default().cautions().is_empty());
        assert!(cautions("none", 3).is_empty());
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
