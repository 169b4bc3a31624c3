//! What is known to be wrong with a deployment: faults of versions of etcd that concern locks, too few
//! members, and a database that is nearly full.

use crate::wire::version::Version;

/// A fault, and the patches that correct it.
struct Fault {
    /// The first patches of 3.4 and 3.5 without it; `NEVER` if 3.4 keeps it, 0 if it never had it.
    corrected: (u32, u32),
    /// Whether only a cluster of one has it.
    alone: bool,
    /// Whether a held lock may be gone after a crash, or have two holders.
    loses: bool,
    what: &'static str,
}

impl Fault {
    fn concerns(&self, version: Version, alone: bool) -> bool {
        version.is_before(self.corrected.0, self.corrected.1) && (!self.alone || alone)
    }
}

const NEVER: u32 = u32::MAX;

const FAULTS: [Fault; 8] = [
    Fault {
        corrected: (0, 3),
        alone: false,
        loses: true,
        what: "members may differ in their data after a crash, and a lock may then have two \
               holders (etcd issue 13766)",
    },
    Fault {
        corrected: (0, 6),
        alone: false,
        loses: false,
        what: "members may differ in their revision after a crash while one defragments, and \
               fencing tokens with it (etcd pull request 14733)",
    },
    Fault {
        corrected: (8, 0),
        alone: false,
        loses: true,
        what: "members may differ in their data after a restart if logins are used (etcd pull \
               request 11652)",
    },
    Fault {
        corrected: (22, 6),
        alone: false,
        loses: true,
        what: "members may differ in their data if logins are used and one catches up by a \
               snapshot (etcd pull request 14648)",
    },
    Fault {
        corrected: (21, 5),
        alone: true,
        loses: true,
        what: "a single member may lose what it has confirmed when it crashes, and locks with it \
               (etcd issue 14370)",
    },
    Fault {
        corrected: (31, 13),
        alone: false,
        loses: false,
        what: "a leader that stalled may revoke living leases, and confirm keep-alives of dead \
               ones, after it stepped down (etcd issue 15247)",
    },
    Fault {
        corrected: (32, 14),
        alone: false,
        loses: false,
        what: "the revision may go back after a crash during a compaction, and fencing tokens with \
               it (etcd issue 17780)",
    },
    Fault {
        corrected: (NEVER, 0),
        alone: false,
        loses: false,
        what: "leases follow the wall clock of the leader, so a clock that is set forward ends \
               them early, and one that is set back keeps the locks of the dead",
    },
];

/// Returns a sentence for each fault of this version, and for too few voting members. What is
/// unknown is not reported.
pub(crate) fn of(version: Option<Version>, voters: Option<usize>) -> Vec<String> {
    let faults = version.into_iter().flat_map(|version| {
        let concerns = move |fault: &&Fault| fault.concerns(version, voters == Some(1));
        FAULTS.iter().filter(concerns).map(move |fault| sentence(version, fault))
    });
    faults.chain(voters.and_then(too_few)).collect()
}

/// Whether a held lock may be gone after a crash, or have two holders, for a fault of this version.
/// If the version is unknown, it may.
pub(crate) fn may_lose(version: Option<Version>, voters: Option<usize>) -> bool {
    let alone = voters.is_none_or(|voters| voters == 1);
    version.is_none_or(|version| {
        FAULTS.iter().any(|fault| fault.loses && fault.concerns(version, alone))
    })
}

/// The size at which etcd refuses every write, if it is not told and not set.
const DEFAULT_LIMIT: i64 = 2 << 30;

/// Returns a sentence if the database has filled three quarters of its limit; 0 stands for etcd's
/// default. Without compaction locks alone fill it: etcd keeps every change.
pub(crate) fn of_size(size: i64, limit: i64) -> Option<String> {
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
    let newer = match version.is_of_3_4() && of_3_4 != NEVER {
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

    fn cautions(version: &str, voters: usize) -> Vec<String> {
        of(Version::parse(version), Some(voters))
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
        let loses = |version, voters| may_lose(Version::parse(version), Some(voters));
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
        assert!(of(None, None).is_empty());
        assert!(of(Version::parse("none"), Some(3)).is_empty());
    }
}
