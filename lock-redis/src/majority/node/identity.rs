//! What a node says about itself.

use std::time::Duration;

use super::super::fault::Fault;

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
pub(super) const SECTIONS: [&str; 4] = ["server", "replication", "memory", "persistence"];

impl Identity {
    /// Reads the server's text; `None` if it lacks a part.
    pub(in super::super) fn read(info: &str) -> Option<Self> {
        let field = |name: &str| {
            let rest = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned());
            info.lines().find_map(rest)
        };
        // Negative if its clock was set back.
        let uptime: i64 = field("uptime_in_seconds")?.parse().ok()?;
        Some(Self {
            run: field("run_id")?,
            uptime: Duration::from_secs(u64::try_from(uptime).unwrap_or_default()),
            is_replica: field("role").is_some_and(|role| role != "master"),
            is_of_a_cluster: field("redis_mode").is_some_and(|mode| mode == "cluster"),
            evicts: field("maxmemory_policy").filter(|policy| policy != "noeviction"),
            keeps_data: field("aof_enabled").is_none_or(|enabled| enabled != "0"),
        })
    }

    /// Refuses a node that is not independent.
    ///
    /// # Errors
    ///
    /// The reason.
    pub(super) fn check(&self) -> Result<(), Fault> {
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
            Identity::read(&text).unwrap()
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
        assert_eq!(Identity::read("run_id:abc\r\n"), None);
    }

    #[test]
    fn a_server_whose_clock_was_set_back_has_just_started() {
        let identity = Identity::read("run_id:abc\r\nuptime_in_seconds:-3599\r\n").unwrap();
        assert_eq!(identity.uptime, Duration::ZERO);
    }
}
