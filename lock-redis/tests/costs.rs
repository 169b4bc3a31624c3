//! What an acquisition costs in requests: on each deployment as much as on one server.

use std::{collections::BTreeMap, time::Duration};

use lock_core::{DistributedLock, Kind};
use lock_lab::{Redis, RedisCluster};
use lock_redis::RedisLock;

use crate::lab::{self, *};

/// So long that no renewal falls into a count.
const TTL: Duration = Duration::from_secs(600);
const PAIRS: u64 = 60;
/// What servers and sentinels say to each other, and what this test asks.
/// Before Redis 7.0, a command is counted without its subcommand: sentinels name their connections.
const OTHERS: [&str; 7] =
    ["ping", "publish", "replconf", "psync", "info", "config|resetstat", "client"];
/// What a script does inside the server, and what a client does not send while it only locks.
const INSIDE: [&str; 10] =
    ["time", "set", "get", "del", "exists", "lpop", "llen", "pttl", "pexpire", "expire"];

/// Names that each primary of a cluster has some of.
fn names() -> Vec<String> {
    (0..12).map(|number| format!("orders/{number}")).collect()
}

async fn pairs(client: &RedisLock, count: u64) {
    for lock in names().iter().cycle().take(usize::try_from(count).unwrap()) {
        acquire(client, lock, TTL).await.unwrap().release().await.unwrap();
    }
}

/// Commands that these servers have got, by their names.
async fn commands(servers: &[Redis]) -> BTreeMap<String, u64> {
    let mut commands = BTreeMap::new();
    for server in servers {
        for (what, count) in server.counters().await.unwrap().iter() {
            if let Some(command) = what.strip_prefix("cmd.") {
                *commands.entry(command.to_owned()).or_default() += count;
            }
        }
    }
    commands
}

/// The requests of a client for [`PAIRS`] locks, taken and given back.
async fn requests(url: &str, servers: &[Redis]) -> BTreeMap<String, u64> {
    let client = driver(url).await;
    // The second and later ones are alike: servers have all scripts, and the client all slots.
    pairs(&client, names().len() as u64).await;
    let before = commands(servers).await;
    pairs(&client, PAIRS).await;
    let mut after = commands(servers).await;
    for (command, count) in &mut after {
        *count -= before.get(command).copied().unwrap_or_default();
    }
    let of_clients = |command: &str| !OTHERS.contains(&command) && !INSIDE.contains(&command);
    after.into_iter().filter(|(what, count)| *count > 0 && of_clients(what)).collect()
}

#[tokio::test]
async fn sentinel_and_cluster_cost_the_requests_of_one_server() {
    let single = [lab::server().await];
    let alone = requests(&single[0].url(), &single).await;
    assert_eq!(alone, BTreeMap::from([("evalsha".to_owned(), 2 * PAIRS)]));
    let sentinels = deployments::sentinels().await;
    let addrs: Vec<_> = sentinels.sentinel_addrs().iter().map(ToString::to_string).collect();
    let url = format!("redis+sentinel://{}/{}", addrs.join(","), sentinels.service());
    assert_eq!(requests(&url, &sentinels.nodes()[..1]).await, alone, "with Sentinel");
    let cluster = deployments::cluster().await;
    assert_eq!(requests(&cluster.url(), cluster.nodes()).await, alone, "in a cluster");
    // The names were on all nodes, or nothing is shown.
    for node in cluster.nodes() {
        assert!(node.counters().await.unwrap().get("cmd.evalsha") > 0);
    }
}

/// Tags of this many slots of a node.
async fn tags_at(cluster: &RedisCluster, node: usize, count: usize) -> Vec<String> {
    let mut tags = Vec::new();
    for tag in (0..).map(|number| format!("{{t{number}}}")) {
        if tags.len() == count {
            break;
        }
        if cluster.owner(RedisCluster::slot_of(tag.as_bytes())).await.unwrap() == node {
            tags.push(tag);
        }
    }
    tags
}

/// Many locks of all kinds in three slots, with waiters: a round is one request per slot.
#[tokio::test]
async fn an_idle_client_of_a_cluster_sends_one_request_per_slot_and_round() {
    let cluster = deployments::cluster().await;
    let client = driver(&format!("{}?layout=native", cluster.url())).await;
    let ttl = Duration::from_secs(6);
    let tags = [tags_at(&cluster, 0, 2).await, tags_at(&cluster, 1, 1).await].concat();
    let (mut held, mut waiters) = (Vec::new(), Vec::new());
    for tag in &tags {
        for number in 0..10 {
            held.push(acquire(&client, &format!("{tag}/{number}"), ttl).await.unwrap());
        }
        let shared = format!("{tag}/shared");
        held.push(acquire_as(Kind::Shared, &client, &shared, ttl).await.unwrap());
        waiters.push(Waiter::start(&client, &shared, ttl));
        until(async || client.inspect(&name(&shared)).await.unwrap().len() == 2).await;
    }
    let evaluated = async || {
        let mut counts = Vec::new();
        for node in cluster.nodes() {
            counts.push(node.counters().await.unwrap().get("cmd.evalsha"));
        }
        counts
    };
    // The lock of each slot that was taken last tells of the slot's rounds.
    let last: Vec<_> = held.iter().skip(10).step_by(11).collect();
    let (mut seen, mut rounds) = (vec![None; last.len()], vec![0; last.len()]);
    let before = evaluated().await;
    until(async || {
        for ((lease, seen), rounds) in last.iter().zip(&mut seen).zip(&mut rounds) {
            let end = lease.validity().until();
            if seen.replace(end).is_some_and(|before| before != end) {
                *rounds += 1;
            }
        }
        rounds.iter().all(|rounds| *rounds >= 4)
    })
    .await;
    let after = evaluated().await;
    let sent: Vec<_> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    // A request may be under way at the start and at the end.
    let most = rounds.iter().map(|rounds| rounds + 1).sum();
    assert!(sent.iter().sum::<u64>() <= most, "{sent:?} requests, {rounds:?} rounds");
    assert_eq!(sent[2], 0, "a node without locks: {sent:?}");
    for waiter in waiters {
        waiter.task.abort();
    }
}
