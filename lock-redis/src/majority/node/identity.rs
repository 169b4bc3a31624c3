//! What a node says about itself.

use std::time::Duration;

use futures_util::future::try_join_all;

use super::super::fault::Fault;
use crate::wire::{info::Info, pipe::Pipe};

/// What a node says about itself when a connection is made (`INFO`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) struct Identity {
    /// A random number of the server's process: another one after each restart.
    pub(super) run: String,
    /// How long that process runs, as it says: up to 1 s more than it does.
    pub(super) uptime: Duration,
    is_replica: bool,
    is_of_a_cluster: bool,
    /// The policy by which it deletes keys when its memory is full, if it does so.
    pub(in super::super) evicts: Option<String>,
    /// Whether it writes its data to a file at each change.
    pub(in super::super) keeps_data: bool,
}

/// The parts of `INFO` that are read.
const SECTIONS: [&str; 4] = ["server", "replication", "memory", "persistence"];

impl Identity {
    /// Asks a node, and refuses one that is not independent.
    pub(super) async fn ask(pipe: &Pipe) -> Result<Self, Fault> {
        let sections = SECTIONS.map(Info::question);
        // In one flight.
        let answers = try_join_all(sections.iter().map(|section| pipe.send(section))).await;
        let mut info = Info::default();
        answers.map_err(|error| Fault::of(&error))?.iter().for_each(|answer| info.add(answer));
        let hidden = || Fault::unfit("INFO does not show run_id and uptime_in_seconds");
        let identity = Self::read(&info).ok_or_else(hidden)?;
        identity.check()?;
        Ok(identity)
    }

    /// Reads the server's text; `None` if it lacks a part.
    pub(in super::super) fn read(info: &Info) -> Option<Self> {
        // Negative if its clock was set back.
        let uptime: i64 = info.field("uptime_in_seconds")?.parse().ok()?;
        let policy = info.field("maxmemory_policy").filter(|policy| *policy != "noeviction");
        Some(Self {
            run: info.field("run_id")?.to_owned(),
            uptime: Duration::from_secs(u64::try_from(uptime).unwrap_or_default()),
            is_replica: info.field("role").is_some_and(|role| role != "master"),
            is_of_a_cluster: info.field("redis_mode") == Some("cluster"),
            evicts: policy.map(str::to_owned),
            keeps_data: info.field("aof_enabled") != Some("0"),
        })
    }

    fn check(&self) -> Result<(), Fault> {
        match (self.is_replica, self.is_of_a_cluster) {
            (true, _) => Err(Fault::unfit("it is a replica; each node must be independent")),
            (_, true) => Err(Fault::unfit(
                "it has cluster-enabled yes; each node must be an independent server",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_independent_node_is_told_from_others() {
        let info = |mode, role| {
            let text = format!(
                "# Server\r\nredis_mode:{mode}\r\nrun_id:abc\r\nuptime_in_seconds:34\r\n\
                 # Replication\r\nrole:{role}\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n"
            );
            Identity::read(&Info::from(&*text)).unwrap()
        };
        let identity = info("standalone", "master");
        assert_eq!((&*identity.run, identity.uptime), ("abc", Duration::from_secs(34)));
        assert_eq!(identity.check(), Ok(()));
        assert_eq!((identity.evicts.as_deref(), identity.keeps_data), (Some("allkeys-lru"), false));
        for (mode, role, word) in
            [("standalone", "slave", "replica"), ("cluster", "master", "cluster")]
        {
            let refused = info(mode, role).check().unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
        assert_eq!(Identity::read(&"run_id:abc\r\n".into()), None);
    }

    #[test]
    fn a_server_whose_clock_was_set_back_has_just_started() {
        let identity = Identity::read(&"run_id:abc\r\nuptime_in_seconds:-3599\r\n".into()).unwrap();
        assert_eq!(identity.uptime, Duration::ZERO);
    }
}
