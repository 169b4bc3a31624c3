//! Servers with moved clocks.

use std::{io, time::Duration};

use lock_lab::{Etcd, Postgres, Redis, Shift, ZooKeeper};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{PATIENCE, until};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_redis_whose_wall_clock_goes_ahead_expires_keys() -> Result {
    let redis = Redis::start().await?;
    redis.command(&[b"SET", b"key", b"value", b"PX", b"30000"]).await?;
    redis.move_clocks(Shift::NONE, Shift::ahead(MINUTE))?;
    assert_eq!(redis.command(&[b"GET", b"key"]).await?, "value", "the other clock matters");
    redis.move_clocks(Shift::ahead(MINUTE), Shift::NONE)?;
    assert_eq!(redis.command(&[b"GET", b"key"]).await?, "(nil)");
    Ok(())
}

async fn seconds(redis: &Redis) -> std::result::Result<f64, Box<dyn std::error::Error>> {
    let time = redis.command(&[b"TIME"]).await?;
    let (seconds, micros) = time.split_once('\n').ok_or("two numbers")?;
    Ok(seconds.parse::<f64>()? + micros.parse::<f64>()? / 1e6)
}

#[tokio::test]
async fn a_clock_moves_by_the_shift_and_a_restart_sets_it_right() -> Result {
    let redis = Redis::start().await?;
    let by = Duration::from_millis(3_600_250);
    redis.move_clocks(Shift::ahead(by), Shift::NONE)?;
    let ahead = seconds(&redis).await?;
    redis.move_clocks(Shift::back(by), Shift::NONE)?;
    let behind = seconds(&redis).await?;
    let between = behind + 2.0 * by.as_secs_f64() - ahead;
    assert!((0.0..PATIENCE.as_secs_f64()).contains(&between), "{between} s between two looks");
    redis.restart().await?;
    assert!(seconds(&redis).await? - behind > 3_600.0);
    Ok(())
}

/// Its leases wait for the wall clock, then for the monotonic one.
#[tokio::test]
async fn an_etcd_whose_clocks_go_ahead_ends_leases() -> Result {
    let etcd = Etcd::builder().in_memory().start().await?;
    let lease = etcd.grant(600).await?;
    assert_eq!(etcd.leases().await?, [lease]);
    let hour = Shift::ahead(60 * MINUTE);
    etcd.move_clocks(hour, hour)?;
    until(|| async { etcd.leases().await.is_ok_and(|leases| leases.is_empty()) }).await;
    Ok(())
}

/// Its leases follow the monotonic clock alone.
#[tokio::test]
async fn an_etcd_3_5_whose_monotonic_clock_goes_ahead_ends_leases() -> Result {
    let etcd = Etcd::builder().v3_5().in_memory().start().await?;
    assert!(etcd.version().await?.starts_with("3.5."));
    let lease = etcd.grant(600).await?;
    etcd.move_clocks(Shift::ahead(60 * MINUTE), Shift::NONE)?;
    assert_eq!(etcd.leases().await?, [lease], "the other clock matters");
    etcd.move_clocks(Shift::NONE, Shift::ahead(60 * MINUTE))?;
    until(|| async { etcd.leases().await.is_ok_and(|leases| leases.is_empty()) }).await;
    Ok(())
}

#[tokio::test]
async fn a_zookeeper_whose_monotonic_clock_goes_ahead_ends_sessions() -> Result {
    let zookeeper = ZooKeeper::builder().setting("maxSessionTimeout", "600000").start().await?;
    open_session(&zookeeper).await?;
    let sessions = async || zookeeper.counters().await.map(|counters| counters.get("sessions"));
    zookeeper.move_clocks(Shift::ahead(60 * MINUTE), Shift::NONE)?;
    assert_eq!(sessions().await?, 1, "the other clock matters");
    zookeeper.move_clocks(Shift::NONE, Shift::ahead(60 * MINUTE))?;
    until(async || sessions().await.is_ok_and(|sessions| sessions == 0)).await;
    Ok(())
}

/// Opens a session with the longest timeout, and does not keep it alive.
async fn open_session(zookeeper: &ZooKeeper) -> io::Result<()> {
    let mut request = 45_u32.to_be_bytes().to_vec();
    request.extend([0; 12]); // version, last transaction
    request.extend(i32::MAX.to_be_bytes()); // timeout
    request.extend([0; 8]); // session
    request.extend(16_u32.to_be_bytes());
    request.extend([0; 17]); // password, read-only
    let mut stream = TcpStream::connect(zookeeper.addr()).await?;
    stream.write_all(&request).await?;
    stream.read_exact(&mut [0; 41]).await.map(drop)
}

/// Also in the process of a connection that was there before.
#[tokio::test]
async fn a_postgres_whose_wall_clock_goes_ahead_moves_its_connections() -> Result {
    const WAIT: &str = "DO $$ BEGIN
        WHILE clock_timestamp() < now() + interval '1 hour' LOOP PERFORM pg_sleep(0.01); END LOOP;
        END $$";
    const WAITING: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'";
    let postgres = Postgres::start().await?;
    let moved = async {
        until(async || postgres.sql_as_admin(WAITING).await.is_ok_and(|count| count == "1")).await;
        postgres.move_clocks(Shift::ahead(61 * MINUTE), Shift::NONE)
    };
    let waited = tokio::time::timeout(PATIENCE, postgres.sql(WAIT));
    let (waited, moved) = tokio::join!(waited, moved);
    moved?;
    waited??;
    Ok(())
}

#[tokio::test]
async fn a_stopped_server_stays_stopped() -> Result {
    let redis = Redis::start().await?;
    redis.stop();
    redis.move_clocks(Shift::ahead(MINUTE), Shift::NONE)?;
    assert_eq!(lock_lab::state_of(redis.pid()), Some('T'));
    redis.resume();
    assert_eq!(redis.command(&[b"PING"]).await?, "PONG");
    redis.kill();
    redis.move_clocks(Shift::ahead(MINUTE), Shift::NONE)?;
    Ok(())
}
