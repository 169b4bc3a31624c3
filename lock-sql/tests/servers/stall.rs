//! A table that another connection has locked, and commits that hang: the load on a stalled server
//! stays bounded.

use std::time::Duration;

use lock_core::{Clock, Error, Locks};
use lock_sql::{
    Dialect,
    client::{Connection, MySqlConnection, PgConnection, raw_sql},
};
use tokio::task::JoinSet;

use crate::{
    servers::{Database, eventually, locks, on_both},
    support,
};

on_both!(a_stall_uses_up_no_connections);

/// The shortest TTL: a request waits for a sixth of a second.
const TTL: Duration = Duration::from_millis(500);
const STALL: Duration = Duration::from_secs(3);
/// Several times as long as a client waits for the end of a request that it has given up.
const HANG: Duration = Duration::from_secs(15);
const TASKS: usize = 32;
/// Twice as many as scripts may be on their way, one that listens, and one that asks whether commits
/// hang.
const CONNECTIONS: u64 = 22;

/// Locks a table as long as the connection is there.
enum Blocker {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl Blocker {
    async fn of(server: &Database) -> Self {
        let url = server.url();
        match server {
            Database::Postgres(_) => {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                let lock = "BEGIN; LOCK TABLE distlock_v1_slots";
                raw_sql(lock).execute(&mut connection).await.unwrap();
                Self::Postgres(connection)
            }
            Database::MariaDb(_) => {
                let mut connection = MySqlConnection::connect(&url).await.unwrap();
                let lock = "LOCK TABLES distlock_v1_slots WRITE";
                raw_sql(lock).execute(&mut connection).await.unwrap();
                Self::MariaDb(connection)
            }
        }
    }

    async fn end(self) {
        match self {
            Self::Postgres(connection) => connection.close().await.unwrap(),
            Self::MariaDb(connection) => connection.close().await.unwrap(),
        }
    }
}

/// How many connections of clients there are, and how many statements they execute.
async fn clients(server: &Database) -> (u64, u64) {
    let counts = match server {
        Database::Postgres(_) => {
            "SELECT count(*), count(*) FILTER (WHERE state = 'active') FROM pg_stat_activity \
             WHERE application_name = 'distlock'"
        }
        Database::MariaDb(_) => {
            "SELECT count(*) - 1, coalesce(sum(command = 'Query'), 0) \
             FROM information_schema.processlist WHERE user = 'lab' AND id <> connection_id()"
        }
    };
    let counts = server.sql(counts).await;
    let counts: Vec<_> = counts.split_whitespace().map(|count| count.parse().unwrap()).collect();
    (counts[0], counts[1])
}

/// Asks again and again, until the stall is over.
async fn insist(locks: Locks, name: String, stall: Duration) {
    let (lock, start) = (locks.lock(name).unwrap().ttl(TTL), Clock::Boot.now());
    while Clock::Boot.now().since(start) < stall {
        let refused = lock.acquire().await.map(drop).unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    }
}

async fn a_stall_uses_up_no_connections(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    let blocker = Blocker::of(&server).await;
    let most = most_connections(&server, &locks, STALL).await;
    println!("{dialect:?}: {most} connections");
    assert!(most <= CONNECTIONS, "{most} connections");
    // The table is still locked.
    eventually("no statement is left", async || clients(&server).await.1 == 0).await;
    blocker.end().await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

/// The most connections of a client that asks during a stall.
async fn most_connections(server: &Database, locks: &Locks, stall: Duration) -> u64 {
    let mut tasks: JoinSet<()> =
        (0..TASKS).map(|n| insist(locks.clone(), format!("{n}"), stall)).collect();
    let mut most = 0;
    while !tasks.is_empty() {
        most = most.max(clients(server).await.0);
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    most
}

/// Names the standbys that a commit waits for.
async fn wait_for_standbys(server: &Database, names: &str) {
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
    server.sql_as_admin(&set).await;
    server.sql_as_admin("SELECT pg_reload_conf()").await;
    eventually("the setting counts", async || {
        server.sql_as_admin("SHOW synchronous_standby_names").await.trim() == names
    })
    .await;
}

/// A commit waits for its standby for ever: no limit of the server counts then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_hang_use_up_no_connections() {
    let _turn = support::turn().await;
    let server = Database::start(Dialect::Postgres).await;
    server.spoil();
    let locks = locks(&server.url()).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    wait_for_standbys(&server, "gone").await;
    let most = most_connections(&server, &locks, HANG).await;
    println!("{most} connections");
    assert!(most <= CONNECTIONS, "{most} connections");
    wait_for_standbys(&server, "").await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}
