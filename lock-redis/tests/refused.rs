//! Servers that refuse writes for a while, or change their role.

use std::time::Duration;

use lock_core::{Clock, DistributedLock, Effect, Error, Kind, Overlap};
use lock_lab::Redis;

use crate::lab::{self, switch::switch, *};

const TTL: Duration = Duration::from_secs(15);
const SHORT: Duration = Duration::from_millis(600);

async fn say(server: &Redis, words: &str) {
    let words: Vec<_> = words.split_whitespace().map(str::as_bytes).collect();
    assert_eq!(server.command(&words).await.unwrap(), "OK", "{words:?}");
}

/// Acquires while the server refuses writes, and again while the test repairs it.
async fn is_an_outage_that_passes(server: &Redis, mend: &str) {
    let driver = driver(&server.url()).await;
    let refused = acquire(&driver, "orders", SHORT).await.unwrap_err();
    let Error::Unavailable { effect, .. } = refused else { panic!("{refused}") };
    assert_eq!(effect, Effect::None);
    let waits = Waiter::start(&driver, "orders", TTL);
    tokio::time::sleep(SHORT).await;
    assert!(!waits.task.is_finished());
    say(server, mend).await;
    waits.granted().await.release().await.unwrap();
    nothing_is_left(server).await;
}

#[tokio::test]
async fn too_few_replicas_are_an_outage_that_passes() {
    let server = server().await;
    say(&server, "CONFIG SET min-replicas-to-write 1").await;
    is_an_outage_that_passes(&server, "CONFIG SET min-replicas-to-write 0").await;
}

#[tokio::test]
async fn a_full_memory_is_an_outage_that_passes() {
    let server = server().await;
    // The scripts are there.
    driver(&server.url()).await;
    say(&server, "CONFIG SET maxmemory 1").await;
    is_an_outage_that_passes(&server, "CONFIG SET maxmemory 0").await;
}

/// A server says this before it is asked anything, and ends the connection.
#[tokio::test]
async fn a_server_that_has_no_room_for_a_client_says_so() {
    let server = server().await;
    let client = driver(&server.url()).await;
    let held = acquire(&client, "held", TTL).await.unwrap();
    // The client's connection, and the one that says it.
    say(&server, "CONFIG SET maxclients 1").await;
    for url in [server.url(), format!("{}?mode=simple", server.url())] {
        for _ in 0..5 {
            let refused = try_driver(&url).await.unwrap_err();
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
            assert!(refused.to_string().contains("raise maxclients"), "{refused}");
        }
    }
    held.release().await.unwrap();
    drop((held, client));
    within(async {
        while try_driver(&server.url()).await.is_err() {
            tokio::time::sleep(SHORT / 4).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_attempt_asks_a_server_that_refuses_no_more() {
    let (server, driver) = one_driver().await;
    say(&server, "CONFIG SET min-replicas-to-write 1").await;
    // It would ask for longer than the test waits.
    let waits = Waiter::start(&driver, "orders", PATIENCE * 3);
    tokio::time::sleep(SHORT).await;
    assert!(!waits.task.is_finished());
    waits.attempt.cancel();
    let refused = waits.ended().await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { effect: Effect::None, .. }), "{refused}");
}

#[tokio::test]
async fn a_disk_that_does_not_write_is_an_outage_that_passes() {
    let options = Redis::builder().appendonly(false).arg("--enable-protected-configs").arg("yes");
    let server = options.start().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (there, gone) = (dir.path().to_owned(), format!("CONFIG SET dir {}", dir.path().display()));
    say(&server, &gone).await;
    drop(dir);
    assert!(!there.exists());
    let save: &[&[u8]] = &[b"CONFIG", b"SET", b"save", b"3600 1"];
    assert_eq!(server.command(save).await.unwrap(), "OK");
    assert!(server.command(&[b"BGSAVE"]).await.is_ok());
    until(async || {
        let info = server.command(&[b"INFO", b"persistence"]).await.unwrap();
        info.contains("rdb_last_bgsave_status:err")
    })
    .await;
    is_an_outage_that_passes(&server, "CONFIG SET stop-writes-on-bgsave-error no").await;
}

#[tokio::test]
async fn a_replica_is_an_outage_until_it_is_the_primary_again() {
    let (server, driver) = one_driver().await;
    let other = lab::server().await;
    let port = other.addr().port();
    say(&server, &format!("REPLICAOF 127.0.0.1 {port}")).await;
    let refused = acquire(&driver, "orders", SHORT).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    let refused = try_driver(&server.url()).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    let waits = Waiter::start(&driver, "orders", TTL);
    say(&server, "REPLICAOF NO ONE").await;
    waits.granted().await.release().await.unwrap();
}

/// The number of connections to a server so far.
async fn connections(server: &Redis) -> u64 {
    let info = server.command(&[b"INFO", b"stats"]).await.unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().trim().parse().unwrap()
}

/// Also by a user that may not ask whether the server takes writes: then renewals fail, one
/// connection after the other.
#[tokio::test]
async fn a_demoted_primary_is_asked_for_few_connections() {
    for more in ["", " -persist"] {
        let (server, other) = (lab::server().await, lab::server().await);
        give_documented_rights(&server, more).await;
        let driver = driver(&documented_url(server.addr())).await;
        let _held = acquire(&driver, "held", TTL).await.unwrap();
        let waits = Waiter::start(&driver, "orders", TTL);
        within(waits.granted()).await.release().await.unwrap();
        say(&server, &format!("REPLICAOF 127.0.0.1 {}", other.addr().port())).await;
        let _waits = Waiter::start(&driver, "orders", TTL);
        let before = connections(&server).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let made = connections(&server).await - before;
        // The test's own are counted, too.
        assert!((2..=40).contains(&made), "{made}");
    }
}

#[tokio::test]
async fn a_client_of_a_server_that_became_a_replica_finds_the_new_primary() {
    let (old, new) = (server().await, server().await);
    say(&new, &format!("REPLICAOF 127.0.0.1 {}", old.addr().port())).await;
    let (addr, target) = switch(old.addr()).await;
    let client = driver(&format!("redis://{addr}")).await;
    let held = acquire(&client, "held", TTL).await.unwrap();
    until(async || new.command(&[b"EXISTS", b"held"]).await.unwrap() == "1").await;
    // The old one stays reachable, and its connections stay open.
    say(&new, "REPLICAOF NO ONE").await;
    *target.lock().unwrap() = new.addr();
    say(&old, &format!("REPLICAOF 127.0.0.1 {}", new.addr().port())).await;
    let lease = acquire(&client, "orders", TTL).await.unwrap();
    assert_eq!(new.command(&[b"EXISTS", b"orders"]).await.unwrap(), "1");
    held.renew().await.unwrap();
    lease.release().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_at_connect() {
    let options = Redis::builder().appendonly(false).arg("--cluster-enabled").arg("yes");
    let server = options.start().await.unwrap();
    for mode in ["queue", "simple"] {
        let refused = try_driver(&format!("{}?mode={mode}", server.url())).await.unwrap_err();
        assert!(refused.to_string().contains("Cluster"), "{refused}");
        assert!(matches!(refused, Error::Rejected { effect: Effect::None, .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn only_the_scripts_that_are_needed_are_loaded() {
    let server = server().await;
    let driver = driver(&server.url()).await;
    let loaded = async || {
        let counters = server.counters().await.unwrap();
        // Before Redis 7.0, a command is counted without its subcommand.
        counters.get("cmd.script|load") + counters.get("cmd.script")
    };
    assert_eq!(loaded().await, 3);
    acquire(&driver, "orders", TTL).await.unwrap().release().await.unwrap();
    assert_eq!(loaded().await, 3);
    // A reader uses the same scripts as all others.
    acquire_as(Kind::Shared, &driver, "orders", TTL).await.unwrap().release().await.unwrap();
    assert_eq!(loaded().await, 3);
    driver.inspect(&name("orders")).await.unwrap();
    assert_eq!(loaded().await, 4);
    let other = lab::driver(&server.url()).await;
    other.inspect(&name("orders")).await.unwrap();
    assert_eq!(loaded().await, 4);
}

/// Polls become less frequent, but start anew with each new foreign holder.
#[tokio::test]
async fn the_release_of_a_foreign_holder_that_followed_another_is_seen_soon() {
    let (server, driver) = one_driver().await;
    let set = async |who: &[u8]| {
        let set: &[&[u8]] = &[b"SET", b"orders", who, b"PX", b"60000"];
        assert_eq!(server.command(set).await.unwrap(), "OK");
    };
    set(b"one").await;
    let waiter = Waiter::queued(&driver, &server, "orders", TTL * 4).await;
    let polls = async || server.counters().await.unwrap().get("cmd.evalsha");
    // By then it polls every second.
    let before = polls().await;
    until(async || polls().await >= before + 6).await;
    // 1 s until it sees the next holder, then 50, 100 and 200 ms; else four times 1 s.
    let mut holders = 0;
    mostly_below(Duration::from_millis(2500), async || {
        holders += 1;
        set(format!("holder {holders}").as_bytes()).await;
        let (before, start) = (polls().await, Clock::Boot.now());
        until(async || polls().await >= before + 4).await;
        Clock::Boot.now().since(start)
    })
    .await;
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    waiter.granted().await.release().await.unwrap();
}

#[tokio::test]
async fn a_replica_and_durability_are_seen_at_connect() {
    let alone = server().await;
    let seen = driver(&alone.url()).await.guarantees().overlaps.clone();
    assert!(seen.contains(&Overlap::Restart) && !seen.contains(&Overlap::Failover), "{seen:?}");
    let durable = Redis::start().await.unwrap();
    let seen = driver(&durable.url()).await.guarantees().overlaps.clone();
    assert!(!seen.contains(&Overlap::Restart), "{seen:?}");
    let replica = server().await;
    say(&replica, &format!("REPLICAOF 127.0.0.1 {}", alone.addr().port())).await;
    until(async || {
        let seen = driver(&alone.url()).await.guarantees().overlaps.clone();
        seen.contains(&Overlap::Failover)
    })
    .await;
}

/// The host vanishes without a word: neither an answer nor the end of a connection.
#[tokio::test]
async fn a_silent_primary_ends_a_request_that_replicas_must_have() {
    let (server, proxy, _) = behind_a_proxy().await;
    let replica = lab::server().await;
    say(&replica, &format!("REPLICAOF 127.0.0.1 {}", server.addr().port())).await;
    let replicates = async || server.command(&[b"WAIT", b"1", b"100"]).await.unwrap() == "1";
    until(replicates).await;
    let url = server.url_via(&proxy);
    let far = driver(&format!("{url}?wait_replicas=1&request_timeout=4s")).await;
    // On a busy machine the replica may be late.
    let granted = async |lock: &str| loop {
        if let Ok(lease) = acquire(&far, lock, TTL * 4).await {
            return lease;
        }
    };
    let held = within(granted("orders")).await;
    proxy.cut();
    let silent = within(held.renew()).await.unwrap_err();
    assert!(matches!(silent, Error::Unavailable { .. }), "{silent:?}");
    proxy.heal();
    within(granted("next")).await.release().await.unwrap();
}

/// It needs three connections, and each of them a login.
#[tokio::test]
async fn a_client_with_replicas_whose_login_is_refused_connects_now_and_then() {
    let (server, replica) = (lab::server().await, lab::server().await);
    say(&server, "ACL SETUSER app on >first ~* &* +@all").await;
    say(&replica, &format!("REPLICAOF 127.0.0.1 {}", server.addr().port())).await;
    until(async || server.command(&[b"WAIT", b"1", b"100"]).await.unwrap() == "1").await;
    let client = driver(&format!("redis://app:first@{}?wait_replicas=1", server.addr())).await;
    say(&server, "ACL SETUSER app resetpass >second").await;
    let killed = server.command(&[b"CLIENT", b"KILL", b"USER", b"app"]).await.unwrap();
    assert_eq!(killed, "3");
    let waits = Waiter::start(&client, "orders", PATIENCE * 3);
    let before = connections(&server).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let made = connections(&server).await - before;
    // The test's own is counted, too.
    assert!((2..=40).contains(&made), "{made}");
    say(&server, "ACL SETUSER app >first").await;
    waits.granted().await.release().await.unwrap();
}
