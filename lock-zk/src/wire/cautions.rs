//! What the servers tell about themselves, and the cautions that follow from it.

use std::{io, ops::RangeInclusive, time::Duration};

use lock_core::duration::shown;

use crate::wire::{
    questions::{self, Timing},
    route::Route,
};

/// Bugs of an ensemble that can cost a lock, with the versions that have them: from the first one,
/// and before the second one.
const BUGS: [(Version, Version, &str); 6] = [
    ((0, 0, 0), (3, 5, 4), "a lock may stay after its client has died (ZOOKEEPER-2355)"),
    ((3, 5, 4), (3, 5, 10), INCONSISTENT),
    ((3, 6, 0), (3, 6, 3), INCONSISTENT),
    ((3, 7, 0), (3, 8, 4), LOST_WRITES),
    ((3, 9, 0), (3, 9, 2), LOST_WRITES),
    ((3, 9, 3), (3, 9, 4), "writes may be lost when a leader changes (ZOOKEEPER-4925)"),
];
const INCONSISTENT: &str = "servers may differ after a leader has changed (ZOOKEEPER-3911)";
const LOST_WRITES: &str = "writes may be lost when a server joins again (ZOOKEEPER-4785)";

type Version = (u32, u32, u32);

type Answers = Vec<io::Result<String>>;

/// Answers of all servers, as far as they permit the questions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// To `srvr`: the version, and whether the server stands alone.
    modes: Answers,
    /// To `conf`: timeouts and tick.
    settings: Answers,
    /// To `mntr`: how often the server has written its log to the disk.
    numbers: Answers,
}

impl Facts {
    /// Asks all servers, after a session was opened: that is a write.
    pub(crate) async fn ask(route: &Route) -> Self {
        let (modes, settings, numbers) =
            tokio::join!(route.ask_all(b"srvr"), route.ask_all(b"conf"), route.ask_all(b"mntr"));
        Self { modes, settings, numbers }
    }

    /// Whether there is a single server, if so many vote (0: a single one).
    pub(crate) fn stands_alone(&self, members: Option<usize>) -> bool {
        questions::says_alone(&self.modes) && members == Some(0)
    }

    /// Returns what is to be told about these servers, of which so many vote, to a client that counts
    /// with this tick.
    pub(crate) fn cautions(&self, members: Option<usize>, tick: Duration) -> Vec<String> {
        let mut cautions = Vec::new();
        if self.stands_alone(members) {
            let why = "this is a single server: while it is away, no lock can be taken; run three";
            cautions.push(why.to_owned());
        } else {
            let versions = self.modes.iter().flatten();
            let mut versions: Vec<_> = versions.filter_map(|answer| version(answer)).collect();
            versions.sort_unstable();
            versions.dedup();
            cautions.extend(versions.into_iter().filter_map(bug));
        }
        let timing = |answer: &String| questions::parse_conf(answer);
        let timings: Vec<_> = self.settings.iter().flatten().filter_map(timing).collect();
        if let Some((first, other)) = different_timeouts(&timings) {
            cautions.push(format!(
                "the servers grant different session timeouts ({first} and {other}), so that a \
                 lock may end early when its session moves; configure them alike"
            ));
        }
        if let Some(longer) = timings.iter().map(|timing| timing.tick).max()
            && longer > tick
        {
            let longer = shown(longer);
            cautions.push(format!(
                "a server has a tickTime of {longer} and another one has less, so that a holder \
                 may hear of its loss too late; configure them alike, or set tick={longer}"
            ));
        }
        // A session's creation is written by a majority before the server answers.
        let writes = self.numbers.iter().flatten().filter_map(|answer| writes(answer));
        let unwritten = writes.filter(|writes| *writes == 0).count();
        if unwritten * 2 > members.unwrap_or(usize::MAX / 2).max(1) {
            let why = "the servers do not write to the disk before they answer, so that a crash of \
                       the machines may forget locks; remove forceSync=no";
            cautions.push(why.to_owned());
        }
        cautions
    }
}

fn different_timeouts(timings: &[Timing]) -> Option<(String, String)> {
    let mut all = timings.iter().map(|timing| &timing.timeouts);
    let first = all.next()?;
    let other = all.find(|other| *other != first)?;
    let text = |range: &RangeInclusive<Duration>| {
        format!("{} to {}", shown(*range.start()), shown(*range.end()))
    };
    Some((text(first), text(other)))
}

/// Reads the version from the answer to `srvr`: `Zookeeper version: 3.8.0-..`.
fn version(answer: &str) -> Option<Version> {
    let version = answer.lines().find_map(|line| line.strip_prefix("Zookeeper version: "))?;
    let end = version.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(version.len());
    let mut numbers = version[..end].split('.').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next()?))
}

/// Reads from the answer to `mntr` how often the log was written to the disk.
fn writes(answer: &str) -> Option<u64> {
    answer.lines().find_map(|line| line.strip_prefix("zk_cnt_fsynctime\t"))?.trim().parse().ok()
}

/// Returns the worst known bug of a version that concerns locks.
fn bug(version: Version) -> Option<String> {
    let is_in = |(from, before, _): &&(Version, Version, &str)| (*from..*before).contains(&version);
    let (_, before, what) = BUGS.iter().find(is_in)?;
    let text = |(major, minor, patch): Version| format!("{major}.{minor}.{patch}");
    let (found, fixed) = (text(version), text(*before));
    Some(format!("ZooKeeper {found}: {what}; install {fixed} or newer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn srvr(version: &str, mode: &str) -> io::Result<String> {
        Ok(format!("Zookeeper version: {version}-a1b2, built on 2024\nMode: {mode}\n"))
    }

    fn mntr(writes: u64) -> io::Result<String> {
        Ok(format!("zk_version\t3.8.0\nzk_cnt_fsynctime\t{writes}\n"))
    }

    const TICK: Duration = Duration::from_millis(2000);

    fn conf(least: u64) -> io::Result<String> {
        Ok(format!("tickTime=2000\nminSessionTimeout={least}\nmaxSessionTimeout=40000\n"))
    }

    fn of_modes<const N: usize>(modes: [io::Result<String>; N]) -> Facts {
        Facts { modes: modes.into(), ..Facts::default() }
    }

    fn of_settings<const N: usize>(settings: [io::Result<String>; N]) -> Facts {
        Facts { settings: settings.into(), ..Facts::default() }
    }

    #[test]
    fn versions_with_known_bugs_are_told() {
        for (version, bug) in [
            ("3.5.3", Some("ZOOKEEPER-2355")),
            ("3.5.9", Some("ZOOKEEPER-3911")),
            ("3.5.10", None),
            ("3.6.2", Some("ZOOKEEPER-3911")),
            ("3.6.4", None),
            ("3.8.0", Some("ZOOKEEPER-4785")),
            ("3.8.4", None),
            ("3.9.1", Some("ZOOKEEPER-4785")),
            ("3.9.2", None),
            ("3.9.3", Some("ZOOKEEPER-4925")),
            ("3.9.4", None),
            ("3.10.0", None),
        ] {
            let facts = of_modes([srvr(version, "leader"), srvr(version, "follower")]);
            let cautions = facts.cautions(Some(3), TICK).concat();
            assert_eq!(cautions.is_empty(), bug.is_none(), "{version}: {cautions}");
            assert!(cautions.contains(bug.unwrap_or_default()), "{version}: {cautions}");
        }
        let unreadable = [Ok("srvr is not executed".to_owned()), Err(io::Error::other("x"))];
        assert!(of_modes(unreadable).cautions(Some(3), TICK).is_empty());
    }

    #[test]
    fn a_single_server_is_told_instead_of_the_bugs_of_ensembles() {
        let facts = Facts { numbers: vec![mntr(7)], ..of_modes([srvr("3.8.0", "standalone")]) };
        let cautions = facts.cautions(Some(0), TICK);
        assert!(cautions.len() == 1 && cautions[0].contains("single server"), "{cautions:?}");
    }

    #[test]
    fn servers_that_do_not_write_to_the_disk_are_told_if_they_are_a_majority() {
        let told = |writes: &[u64], members| {
            let numbers = writes.iter().map(|writes| mntr(*writes)).collect();
            !Facts { numbers, ..Facts::default() }.cautions(members, TICK).is_empty()
        };
        assert!(told(&[0], Some(0)) && told(&[0, 0, 5], Some(3)));
        assert!(!told(&[0, 4, 5], Some(3)) && !told(&[0, 0], None) && !told(&[3], Some(0)));
    }

    #[test]
    fn different_session_timeouts_are_told() {
        let facts = of_settings([conf(4000), conf(4000), conf(6000)]);
        let cautions = facts.cautions(Some(3), TICK).concat();
        assert!(cautions.contains("4s to 40s and 6s to 40s"), "{cautions}");
        assert!(of_settings([conf(4000), conf(4000)]).cautions(Some(3), TICK).is_empty());
    }

    #[test]
    fn a_tick_that_is_longer_than_that_in_use_is_told() {
        let facts = of_settings([conf(4000), conf(4000)]);
        assert!(facts.cautions(Some(3), TICK).is_empty());
        let cautions = facts.cautions(Some(3), TICK / 2).concat();
        assert!(cautions.contains("set tick=2s"), "{cautions}");
    }
}
