//! Sides of a network, and cuts between them.

use std::{io, net::SocketAddr, time::Duration};

use lock_lab::{Etcd, MariaDb, Network, Postgres, Proxy, Redis, Side, ZooKeeper};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::support::{MOMENT, PATIENCE};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// Sends `PING` from a side, and returns whether an answer comes.
async fn reaches(side: &Side, addr: SocketAddr) -> bool {
    answers_within(PATIENCE, side, addr).await
}

async fn misses(side: &Side, addr: SocketAddr) -> bool {
    !answers_within(MOMENT, side, addr).await
}

async fn answers_within(limit: Duration, side: &Side, addr: SocketAddr) -> bool {
    let ping = async move {
        let mut stream = TcpStream::connect(addr).await?;
        ping(&mut stream).await
    };
    side.run(async move { timeout(limit, ping).await.is_ok_and(|result| result.is_ok()) }).await
}

async fn ping(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"PING\r\n").await?;
    stream.read_exact(&mut [0; 7]).await.map(drop)
}

async fn two_sides_of_one_process_see_different_things() -> Result {
    let network = Network::new()?;
    let redis = Redis::builder().on(&network).start().await?;
    let place = redis.place().expect("it stands in the network");
    let (left, right) = (network.side()?, network.side()?);
    assert!(reaches(&left, redis.addr()).await && reaches(&right, redis.addr()).await);
    network.cut(left.place(), place)?;
    assert!(misses(&left, redis.addr()).await && reaches(&right, redis.addr()).await);
    // The lab itself is never cut off.
    network.isolate(place)?;
    assert!(misses(&right, redis.addr()).await);
    assert_eq!(redis.command(&[b"PING"]).await?, "PONG");
    network.heal_between(left.place(), place)?;
    assert!(misses(&left, redis.addr()).await, "an isolated place stays isolated");
    network.rejoin(place)?;
    assert!(reaches(&left, redis.addr()).await && reaches(&right, redis.addr()).await);
    Ok(())
}

async fn a_cut_in_one_direction_lets_the_other_through() -> Result {
    let network = Network::new()?;
    let (speaker, listener) = (network.side()?, network.side()?);
    let (place, at) = (listener.place(), (listener.place().ip(), 4000));
    let server = listener.run(async move { TcpListener::bind(at).await }).await?;
    let hears = listener.spawn(async move {
        let (mut stream, _) = server.accept().await?;
        let mut heard = [0; 2];
        stream.read_exact(&mut heard[..1]).await?;
        stream.write_all(&heard[..1]).await?;
        stream.read_exact(&mut heard[1..]).await?;
        stream.write_all(b"unheard").await?;
        Ok::<_, io::Error>((stream, heard))
    });
    let connect = async move {
        let mut stream = TcpStream::connect(at).await?;
        stream.write_all(b"1").await?;
        stream.read_exact(&mut [0]).await?;
        Ok::<_, io::Error>(stream)
    };
    let mut stream = speaker.run(connect).await?;
    network.deafen(speaker.place(), place)?;
    let mut stream =
        speaker.run(async move { stream.write_all(b"2").await.map(|()| stream) }).await?;
    let (_open, heard) = timeout(PATIENCE, hears).await???;
    assert_eq!(&heard, b"12", "the listener hears the speaker");
    let silence = speaker.spawn(async move {
        let mut text = String::new();
        timeout(MOMENT, stream.read_to_string(&mut text)).await.is_err() && text.is_empty()
    });
    assert!(silence.await?, "the speaker does not hear the listener");
    Ok(())
}

async fn an_open_connection_goes_on_after_a_cut() -> Result {
    let network = Network::new()?;
    let redis = Redis::builder().on(&network).start().await?;
    let (side, addr) = (network.side()?, redis.addr());
    let mut stream = side.run(async move { TcpStream::connect(addr).await }).await?;
    network.isolate(side.place())?;
    let (cut, mut stream) =
        side.run(async move { (timeout(MOMENT, ping(&mut stream)).await.is_err(), stream) }).await;
    assert!(cut);
    network.heal()?;
    let late = side.run(async move { stream.read_exact(&mut [0; 7]).await.map(drop) });
    timeout(PATIENCE, late).await??;
    Ok(())
}

async fn a_proxy_on_a_side_serves_that_side() -> Result {
    let network = Network::new()?;
    let redis = Redis::builder().on(&network).start().await?;
    let (side, other, addr) = (network.side()?, network.side()?, redis.addr());
    let proxy = side.run(Proxy::start(addr)).await?;
    assert!(reaches(&side, proxy.addr()).await);
    assert!(misses(&other, proxy.addr()).await);
    proxy.cut();
    assert!(misses(&side, proxy.addr()).await && reaches(&side, addr).await);
    Ok(())
}

/// Connects from a side, and returns whether a server listens.
async fn listens(side: &Side, addr: SocketAddr) -> bool {
    let connect = async move { timeout(PATIENCE, TcpStream::connect(addr)).await };
    side.run(connect).await.is_ok_and(|connected| connected.is_ok())
}

async fn each_single_server_stands_in_a_network() -> Result {
    let network = Network::new()?;
    let side = network.side()?;
    let etcd = Etcd::builder().on(&network).start();
    let mariadb = MariaDb::builder().on(&network).start();
    let postgres = Postgres::builder().on(&network).start();
    let zookeeper = ZooKeeper::builder().on(&network).start();
    let (etcd, mariadb, postgres, zookeeper) =
        tokio::try_join!(etcd, mariadb, postgres, zookeeper)?;
    etcd.put(b"key", b"value").await?;
    assert_eq!(etcd.keys().await?, [b"key"]);
    assert_eq!(mariadb.sql("SELECT 1").await?, "1");
    assert_eq!(postgres.sql("SELECT 1").await?, "1");
    assert_eq!(zookeeper.four_letter("ruok").await?, "imok");
    for server in [&*etcd, &mariadb, &postgres, &zookeeper] {
        assert!(listens(&side, server.addr()).await);
        server.counters().await?;
        assert!(server.url().contains(&server.place().expect("a place").to_string()));
    }
    Ok(())
}

async fn a_side_that_is_dropped_ends_its_tasks() -> Result {
    let side = Network::new()?.side()?;
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    let task = side.spawn(async move {
        std::future::pending::<()>().await;
        drop(held);
    });
    drop(side);
    timeout(PATIENCE, dropped).await?.expect_err("nothing was sent");
    assert!(task.await.unwrap_err().is_cancelled());
    Ok(())
}

crate::trials!(
    two_sides_of_one_process_see_different_things,
    a_cut_in_one_direction_lets_the_other_through,
    an_open_connection_goes_on_after_a_cut,
    a_proxy_on_a_side_serves_that_side,
    a_side_that_is_dropped_ends_its_tasks,
    each_single_server_stands_in_a_network,
);
