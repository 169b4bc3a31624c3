//! What a server counts.

use lock_lab::{Counters, Server};

use crate::{Failure, Role};

/// The counts of a round. `None` where the server has no such count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub requests: Option<u64>,
    pub wakes: Option<u64>,
}

/// What stands at a server. `None` where it does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub connections: Option<u64>,
    pub watches: Option<u64>,
}

/// `None` without a server of our own.
pub(crate) async fn counters(server: Option<&Server>) -> Result<Option<Counters>, Failure> {
    match server {
        Some(server) => Ok(Some(server.counters().await?)),
        None => Ok(None),
    }
}

impl Counted {
    pub(crate) fn of(scheme: &str, role: Role, since: &Counters) -> Self {
        let of_clients = |what: &str| match scheme {
            // The server also counts the commands of scripts. Only these come from clients; a bare
            // SET comes from the least and from the usual way.
            "redis" => {
                ["cmd.evalsha", "cmd.eval", "cmd.ping", "cmd.subscribe"].contains(&what)
                    || what == "cmd.set" && matches!(role, Role::FloorLeast | Role::Usual)
            }
            "etcd" => what.starts_with("msg."),
            "zookeeper" => what == "packets_received",
            // A prepared statement counts as its own kind, too.
            _ => what.starts_with("cmd.") && what != "cmd.stmt_execute",
        };
        let sum = |is: &dyn Fn(&str) -> bool| -> u64 {
            since.iter().filter(|(what, _)| is(what)).map(|(_, count)| count).sum()
        };
        // One packet asks ZooKeeper for its counters.
        let own = u64::from(scheme == "zookeeper");
        let wakes = match scheme {
            // An etcdctl ends before the reply to its last message.
            "etcd" if role == Role::Usual => None,
            // The server replies to each message on a watch stream. A reply is no event.
            "etcd" => Some(since.get("sent.Watch").saturating_sub(since.get("msg.Watch"))),
            "redis" => Some(since.get("cmd.publish")),
            "zookeeper" => Some(sum(&|what| what.starts_with("fired."))),
            _ => None,
        };
        Self { requests: Some(sum(&of_clients).saturating_sub(own)), wakes }
    }
}

impl Standing {
    /// What has come since `before`, while one contender connected. The connection that asks is in
    /// both.
    pub(crate) fn since(scheme: &str, before: &Counters, now: &Counters) -> Self {
        let grown = |what: &str| Some(now.get(what).saturating_sub(before.get(what)));
        match scheme {
            "etcd" => Self { connections: None, watches: grown("watchers") },
            "redis" => Self { connections: grown("clients"), watches: grown("pubsub_channels") },
            "zookeeper" => Self { connections: grown("connections"), watches: grown("watches") },
            _ => Self { connections: grown("connections"), watches: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_script_are_no_requests() {
        let since = Counters::from_iter([("cmd.evalsha", 4), ("cmd.set", 2), ("cmd.publish", 1)]);
        let of = |role| Counted::of("redis", role, &since);
        assert_eq!(of(Role::Distlock).requests, Some(4));
        assert_eq!(of(Role::Unordered).requests, Some(4));
        assert_eq!(of(Role::FloorKeys).requests, Some(4));
        assert_eq!(of(Role::FloorLeast).requests, Some(6));
        assert_eq!(of(Role::Distlock).wakes, Some(1));
    }
}
