//! The deployment at connect: which faults may lose locks, and settings that make it worse.

use std::{collections::HashMap, time::Duration};

use futures_util::future::join_all;
use lock_core::{Guarantees, Overlap};
use redis::cmd;

use super::{Session, node::Node};
use crate::wire::{answer::text, info::Info, sentinel::Server};

/// Time limit of one question.
const LIMIT: Duration = Duration::from_secs(2);
/// Settings that count. The older servers take one pattern at a time.
const PATTERNS: [&str; 4] = ["append*", "maxmemory*", "min-replicas-*", "save"];

/// What is known about the server. Questions may be forbidden, and then nothing is said about them.
#[derive(Debug, Default)]
struct Deployment {
    settings: HashMap<String, String>,
    is_replica: bool,
    /// Number of replicas that may take over, as far as it is known.
    replicas: Option<usize>,
    /// Whether these are all, also those that are down now.
    are_all: bool,
    /// Whether failovers are a part of the deployment: Sentinel, a cluster.
    fails_over: bool,
    sentinel: bool,
}

impl Session {
    /// Fills in what the deployment promises. Sends a few questions.
    pub(crate) async fn describe_deployment(&self, guarantees: &mut Guarantees) {
        let nodes = self.routes.all();
        let waits = usize::try_from(self.config.wait_replicas).unwrap_or(usize::MAX);
        // Each server of a deployment keeps some of the locks.
        let all = join_all(nodes.iter().map(|node| Deployment::ask(node))).await;
        let survives_restart = all.iter().all(Deployment::is_durable);
        let may_lose = all.iter().any(|deployment| deployment.may_lose(waits));
        guarantees.survives.restart = survives_restart;
        guarantees.overlaps.retain(|overlap| match overlap {
            Overlap::Restart => !survives_restart,
            Overlap::Failover => may_lose,
            _ => true,
        });
        for caution in all.iter().flat_map(|deployment| deployment.cautions(waits)) {
            if !guarantees.cautions.contains(&caution) {
                guarantees.cautions.push(caution);
            }
        }
    }
}

impl Deployment {
    async fn ask(node: &Node) -> Self {
        let configured = join_all(PATTERNS.map(|pattern| node.settings(pattern))).await;
        let info = node.connection().map(|connection| connection.info.clone()).unwrap_or_default();
        let connected = info.field("connected_slaves").filter(|_| !info.is_replica());
        let connected = connected.and_then(|count| count.parse().ok());
        let server = &node.connector.server;
        let known = match server {
            Server::Sentinel(sentinels) => sentinels.replicas().await.ok(),
            Server::Member(_) => node.replicas_in_cluster().await,
            Server::Fixed(_) => None,
        };
        Self {
            settings: settings_in(&info).chain(configured.into_iter().flatten()).collect(),
            is_replica: info.is_replica(),
            replicas: connected.max(known),
            are_all: known.is_some(),
            fails_over: !matches!(server, Server::Fixed(_)),
            sentinel: matches!(server, Server::Sentinel(_)),
        }
    }

    /// Whether a failover may lose locks. None survives the loss of a node: the newest locks may be
    /// on that node alone, or the replicas that are waited for are too few without it.
    fn may_lose(&self, waits: usize) -> bool {
        // What is true now and may be worse later is no promise.
        let all_have_it = self.are_all && self.replicas.is_some_and(|all| all > 0 && waits >= all);
        let is_alone = !self.fails_over && self.replicas == Some(0);
        !is_alone && !all_have_it
    }

    /// Whether a restart of the server keeps every confirmed write. Only `appendfsync always` does:
    /// with `appendfsync everysec` and a slow disk, the server confirms writes before it hands them
    /// to the system. A server that hides its settings counts as not durable.
    fn is_durable(&self) -> bool {
        self.is("appendonly", "yes") && self.is("appendfsync", "always")
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.settings.get(name).is_some_and(|found| found == value)
    }

    /// `waits`: for how many replicas each lock waits.
    fn cautions(&self, waits: usize) -> Vec<String> {
        let mut cautions = Vec::new();
        if let Some(policy) = self.settings.get("maxmemory-policy").filter(|p| *p != "noeviction") {
            cautions.push(format!(
                "maxmemory-policy is {policy}: when the memory is full, the server deletes locks; \
                 set maxmemory-policy noeviction"
            ));
        }
        if self.is("appendonly", "no") {
            let loses = if self.is("save", "") { "all locks" } else { "the newest locks" };
            cautions.push(format!(
                "appendonly is no: a restart of the server loses {loses}; set appendonly yes and \
                 appendfsync always"
            ));
        }
        if self.is_replica {
            let why = "the server is a replica that takes writes: they are lost when it syncs with \
                       its primary; connect to the primary";
            cautions.push(why.to_owned());
        }
        cautions.extend(self.caution_of_replicas(waits));
        cautions
    }

    fn caution_of_replicas(&self, waits: usize) -> Option<String> {
        let all = self.replicas?;
        match waits {
            0 if self.sentinel && self.is("min-replicas-to-write", "0") => Some(
                "min-replicas-to-write is 0: a primary that is cut off from its replicas goes on \
                 granting locks while another one takes over; set min-replicas-to-write 1 and \
                 min-replicas-max-lag to a second or two, or use wait_replicas"
                    .to_owned(),
            ),
            waits if waits > all => Some(format!(
                "wait_replicas is {waits}, and there are {all} replicas: no lock can be acquired; \
                 add replicas, or lower wait_replicas"
            )),
            waits if waits > 0 && waits < all => Some(format!(
                "wait_replicas is {waits} of {all} replicas: a failover to a replica that lacks a \
                 lock still loses it; set wait_replicas to {all}"
            )),
            _ => None,
        }
    }
}

impl Node {
    async fn settings(&self, pattern: &str) -> HashMap<String, String> {
        let get = cmd("CONFIG").arg("GET").arg(pattern).take();
        // A map, or a flat list in the older protocol.
        let read = |value| redis::from_redis_value::<HashMap<String, String>>(value).ok();
        self.ask(get, LIMIT).await.ok().and_then(read).unwrap_or_default()
    }

    /// Returns the number of a node's replicas, dead ones included, if the cluster tells.
    async fn replicas_in_cluster(&self) -> Option<usize> {
        let nodes = cmd("CLUSTER").arg("NODES").take();
        self.ask(nodes, LIMIT).await.ok().and_then(|answer| replicas_in(&text(&answer)))
    }
}

/// Reads the answer of `CLUSTER NODES`, lines of `ID ADDRESS FLAGS PRIMARY ..`.
fn replicas_in(nodes: &str) -> Option<usize> {
    let fields = |line: &str| -> Option<[String; 3]> {
        let mut fields = line.split(' ').map(str::to_owned);
        Some([fields.next()?, fields.nth(1)?, fields.next()?])
    };
    let nodes: Vec<_> = nodes.lines().filter_map(fields).collect();
    let [myself, ..] = nodes.iter().find(|[_, flags, _]| flags.contains("myself"))?;
    Some(nodes.iter().filter(|[_, _, primary]| primary == myself).count())
}

/// Returns what `INFO` says about the settings: more users may ask for it than for `CONFIG`.
fn settings_in(info: &Info) -> impl Iterator<Item = (String, String)> {
    let appends = info.keeps_data().map(|keeps| if keeps { "yes" } else { "no" });
    let settings = [("maxmemory-policy", info.field("maxmemory_policy")), ("appendonly", appends)];
    settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(settings: &[(&str, &str)], replicas: usize, sentinel: bool) -> Deployment {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let settings = settings.collect();
        Deployment { settings, replicas: Some(replicas), sentinel, ..Deployment::default() }
    }

    #[test]
    fn a_dead_replica_counts() {
        let nodes = "a 10.0.0.1:7@8 myself,master - 0 0 1 connected 0-5460\n\
                     b 10.0.0.2:7@8 slave a 0 1 1 connected\n\
                     c 10.0.0.3:7@8 slave,fail a 0 1 1 disconnected\n\
                     d 10.0.0.4:7@8 master - 0 1 2 connected 5461-16383\n\
                     e 10.0.0.5:7@8 slave d 0 1 2 connected\n";
        assert_eq!(replicas_in(nodes), Some(2));
        assert_eq!(replicas_in("ERR"), None);
    }

    #[test]
    fn each_caution_says_what_to_do() {
        for (settings, replicas, waits, word) in [
            (&[("maxmemory-policy", "allkeys-lru")][..], 0, 0, "set maxmemory-policy noeviction"),
            (&[("appendonly", "no"), ("save", "")], 0, 0, "all locks"),
            (&[("appendonly", "no"), ("save", "60 1")], 0, 0, "the newest locks"),
            (&[("min-replicas-to-write", "0")], 2, 0, "use wait_replicas"),
            (&[], 1, 2, "no lock can be acquired"),
            (&[], 2, 1, "set wait_replicas to 2"),
        ] {
            let found = deployment(settings, replicas, true).cautions(waits);
            assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
        }
    }

    #[test]
    fn info_tells_what_config_may_not() {
        let info = "# Memory\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n";
        let settings = settings_in(&info.into()).collect();
        let found = Deployment { settings, ..Deployment::default() }.cautions(0);
        assert!(found[0].contains("allkeys-lru") && found[1].contains("appendonly"), "{found:?}");
    }

    #[test]
    fn nothing_is_said_about_what_is_good_or_hidden() {
        let good = [
            ("maxmemory-policy", "noeviction"),
            ("appendonly", "yes"),
            ("min-replicas-to-write", "1"),
        ];
        assert_eq!(deployment(&good, 2, true).cautions(0), Vec::<String>::new());
        assert_eq!(deployment(&[], 2, true).cautions(2), Vec::<String>::new());
        let hidden = Deployment { sentinel: true, ..Deployment::default() };
        assert_eq!(hidden.cautions(1), Vec::<String>::new());
    }
}
