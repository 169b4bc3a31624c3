//! The proxy that breaks the network, in front of a server that echoes.

use std::{io, net::SocketAddr, time::Duration};

use lock_lab::{Proxy, Redis};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

use crate::{
    is_open,
    support::{MOMENT, PATIENCE, eventually},
};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// An echo server that reports all it reads.
async fn echo() -> io::Result<(SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let (report, reports) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let report = report.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    let _ = report.send(buffer[..length].to_vec());
                    let _ = stream.write_all(&buffer[..length]).await;
                }
            });
        }
    });
    Ok((addr, reports))
}

async fn receives(stream: &mut TcpStream, expected: &[u8]) -> io::Result<()> {
    let mut bytes = vec![0; expected.len()];
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await??;
    assert_eq!(bytes, expected);
    Ok(())
}

async fn hears_nothing(stream: &mut TcpStream) {
    let heard = timeout(MOMENT, stream.read_u8()).await;
    assert!(heard.is_err(), "{heard:?}");
}

async fn is_reset(stream: &mut TcpStream) {
    let end = timeout(PATIENCE, stream.read_u8()).await.expect("it ends");
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn passes_bytes_and_closing_both_ways() -> Result {
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    let sent = vec![7; 300_000];
    client.write_all(&sent).await?;
    client.shutdown().await?; // half of the connection: the echo still comes
    let mut first = vec![0; 100_000];
    timeout(PATIENCE, client.read_exact(&mut first)).await??;
    // The proxy has finished while its last bytes are still in the kernel: they must not be lost.
    eventually("the connection is closed", || proxy.stats().connections_open == 0).await;
    let mut rest = Vec::new();
    timeout(PATIENCE, client.read_to_end(&mut rest)).await??;
    assert!([first, rest].concat() == sent);
    let stats = proxy.stats();
    assert_eq!((stats.bytes_up, stats.bytes_down, stats.connections_total), (300_000, 300_000, 1));
    Ok(())
}

#[tokio::test]
async fn a_cut_holds_all_and_heals_without_a_hole() -> Result {
    let (addr, mut reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut old = TcpStream::connect(proxy.addr()).await?;
    old.write_all(b"before ").await?;
    receives(&mut old, b"before ").await?;
    reports.recv().await;

    proxy.cut();
    let mut new = TcpStream::connect(proxy.addr()).await?; // accepted
    new.write_all(b"new").await?;
    old.write_all(b"during").await?;
    tokio::join!(hears_nothing(&mut old), hears_nothing(&mut new));
    assert!(reports.try_recv().is_err(), "nothing has reached the server");

    proxy.heal();
    receives(&mut old, b"during").await?;
    receives(&mut new, b"new").await?;
    Ok(())
}

#[tokio::test]
async fn a_cut_hides_that_a_side_has_closed() -> Result {
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    client.write_all(b"x").await?;
    receives(&mut client, b"x").await?;
    proxy.cut();
    client.shutdown().await?; // the server would close in turn
    hears_nothing(&mut client).await;
    proxy.heal();
    assert_eq!(timeout(PATIENCE, client.read(&mut [0])).await??, 0);
    Ok(())
}

#[tokio::test]
async fn half_open_passes_requests_and_holds_replies() -> Result {
    let (addr, mut reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    proxy.half_open();
    client.write_all(b"request").await?;
    assert_eq!(timeout(PATIENCE, reports.recv()).await?.unwrap(), b"request");
    hears_nothing(&mut client).await;
    proxy.heal();
    receives(&mut client, b"request").await?;
    Ok(())
}

#[tokio::test]
async fn reset_ends_connections_and_lets_new_ones_in() -> Result {
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut old = TcpStream::connect(proxy.addr()).await?;
    old.write_all(b"x").await?;
    receives(&mut old, b"x").await?;
    proxy.reset();
    is_reset(&mut old).await;
    let mut new = TcpStream::connect(proxy.addr()).await?;
    new.write_all(b"y").await?;
    receives(&mut new, b"y").await?;
    Ok(())
}

#[tokio::test]
async fn data_dropped_by_a_reset_never_arrives() -> Result {
    let (addr, mut reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    proxy.half_open();
    client.write_all(b"done, but unknown").await?;
    timeout(PATIENCE, reports.recv()).await?;
    proxy.reset();
    proxy.heal();
    is_reset(&mut client).await;
    Ok(())
}

#[tokio::test]
async fn refuse_refuses_until_it_heals_on_the_same_port() -> Result {
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut old = TcpStream::connect(proxy.addr()).await?;
    old.write_all(b"x").await?;
    receives(&mut old, b"x").await?;
    for _ in 0..3 {
        proxy.refuse();
        let error = TcpStream::connect(proxy.addr()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        proxy.heal();
        let mut new = TcpStream::connect(proxy.addr()).await?;
        new.write_all(b"y").await?;
        receives(&mut new, b"y").await?;
    }
    is_reset(&mut old).await;
    Ok(())
}

#[tokio::test]
async fn drop_next_reply_loses_one_reply_and_its_connection() -> Result {
    let (addr, mut reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    proxy.drop_next_reply();
    client.write_all(b"x").await?;
    is_reset(&mut client).await;
    assert_eq!(reports.recv().await.unwrap(), b"x", "the server has acted");
    assert_eq!(proxy.stats().replies_dropped, 1);
    let mut next = TcpStream::connect(proxy.addr()).await?;
    next.write_all(b"y").await?;
    receives(&mut next, b"y").await?;
    Ok(())
}

#[tokio::test]
async fn caught_bytes_arrive_on_command_after_the_client_has_left() -> Result {
    let (addr, mut reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    let mut other = TcpStream::connect(proxy.addr()).await?;
    proxy.catch(b"job");
    client.write_all(b"first").await?;
    receives(&mut client, b"first").await?;
    client.write_all(b"a job").await?;
    eventually("it is caught", || proxy.caught() == 1).await;
    client.write_all(b"and more").await?;
    hears_nothing(&mut client).await;
    drop(client);
    // It catches once, and only on that connection.
    other.write_all(b"my job").await?;
    receives(&mut other, b"my job").await?;
    proxy.deliver();
    let mut reported = Vec::new();
    for _ in 0..3 {
        let report = timeout(PATIENCE, reports.recv()).await?;
        reported.push(String::from_utf8(report.expect("the echo server lives"))?);
    }
    assert_eq!(reported, ["first", "my job", "a job"]);
    hears_nothing(&mut other).await;
    assert!(reports.try_recv().is_err(), "what came after it is lost");
    Ok(())
}

#[tokio::test]
async fn held_bytes_arrive_on_command_and_their_connection_lives_on() -> Result {
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    let mut other = TcpStream::connect(proxy.addr()).await?;
    proxy.hold(b"job");
    client.write_all(b"a job").await?;
    eventually("it is held", || proxy.caught() == 1).await;
    client.write_all(b" and more").await?;
    hears_nothing(&mut client).await;
    // It holds once, and only that connection.
    other.write_all(b"my job").await?;
    receives(&mut other, b"my job").await?;
    proxy.deliver();
    receives(&mut client, b"a job and more").await?;
    client.write_all(b"the next job").await?;
    receives(&mut client, b"the next job").await?;
    Ok(())
}

#[tokio::test]
async fn delay_holds_back_each_way_but_not_one_after_the_other() -> Result {
    // So long that a machine that stands still for some seconds does not make it twenty times as much.
    const DELAY: Duration = Duration::from_secs(1);
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    proxy.delay(DELAY);
    let mut client = TcpStream::connect(proxy.addr()).await?;
    client.set_nodelay(true)?;
    let begin = std::fs::read_to_string("/proc/uptime")?;
    for round in 0..20_u8 {
        client.write_all(&[round]).await?;
        // Makes each byte a chunk of its own.
        let seen = u64::from(round) + 1;
        eventually("the proxy has read it", || proxy.stats().bytes_up == seen).await;
    }
    let order: Vec<u8> = (0..20).collect();
    receives(&mut client, &order).await?;
    let seconds = seconds(&std::fs::read_to_string("/proc/uptime")?) - seconds(&begin);
    let delay = DELAY.as_secs_f64();
    assert!(seconds >= 2.0 * delay - 0.02, "two ways of {delay} s took {seconds} s");
    assert!(seconds < 20.0 * delay, "one after the other: {seconds} s");
    assert_eq!(proxy.stats().chunks_up, 20);
    Ok(())
}

/// Reads the first number of `/proc/uptime`, in steps of 10 ms.
fn seconds(uptime: &str) -> f64 {
    uptime.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_delayed_cut_still_holds() -> Result {
    let (addr, mut reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    proxy.delay(Duration::from_millis(50));
    let mut client = TcpStream::connect(proxy.addr()).await?;
    client.write_all(b"x").await?;
    eventually("the byte is on its way", || proxy.stats().bytes_up == 1).await;
    proxy.cut();
    hears_nothing(&mut client).await;
    assert!(reports.try_recv().is_err());
    proxy.heal();
    receives(&mut client, b"x").await?;
    Ok(())
}

#[tokio::test]
async fn drop_resets_and_leaves_no_task() -> Result {
    let (addr, _reports) = echo().await?;
    let proxy = Proxy::start(addr).await?;
    let mut client = TcpStream::connect(proxy.addr()).await?;
    client.write_all(b"x").await?;
    receives(&mut client, b"x").await?;
    let metrics = tokio::runtime::Handle::current().metrics();
    let with_proxy = metrics.num_alive_tasks();
    let closed = proxy.addr();
    drop(proxy);
    assert!(!is_open(closed));
    is_reset(&mut client).await;
    // The accepting task, the connection, and the echo's task for it.
    let waiting = async {
        while metrics.num_alive_tasks() > with_proxy - 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_from_another_thread_and_with_a_real_server() -> Result {
    let redis = Redis::start().await?;
    let proxy = std::sync::Arc::new(Proxy::start(redis.addr()).await?);
    assert_eq!(redis.url_via(&proxy), format!("redis://{}", proxy.addr()));
    let other = std::sync::Arc::clone(&proxy);
    std::thread::spawn(move || {
        other.refuse();
        other.heal(); // outside the runtime
    })
    .join()
    .unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await?;
    client.write_all(b"PING\r\n").await?;
    receives(&mut client, b"+PONG\r\n").await?;
    redis.kill();
    is_over(&mut client).await;
    // Accepted and reset. If the reset is quick, connecting already reports it.
    if let Ok(mut late) = TcpStream::connect(proxy.addr()).await {
        is_over(&mut late).await;
    }
    Ok(())
}

async fn is_over(stream: &mut TcpStream) {
    let end = timeout(PATIENCE, stream.read(&mut [0])).await.expect("it ends");
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}
