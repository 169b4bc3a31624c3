//! A private Redis.

use lock_lab::{LabError, Redis, state_of};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    is_open,
    support::{MOMENT, PATIENCE, eventually},
};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn answers_and_names_itself() -> Result {
    let redis = Redis::start().await?;
    assert_eq!(redis.url(), format!("redis://{}", redis.addr()));
    assert_eq!(redis.command(&[b"PING"]).await?, "PONG");
    assert_eq!(redis.command(&[b"GET", b"nothing"]).await?, "(nil)");
    assert!(
        redis
            .command(&[b"INFO", b"server"])
            .await?
            .contains(&format!("process_id:{}", redis.pid()))
    );
    assert!(redis.log().contains("Ready to accept connections"));
    Ok(())
}

#[tokio::test]
async fn two_servers_share_no_data() -> Result {
    let (one, two) = tokio::try_join!(Redis::start(), Redis::start())?;
    one.command(&[b"SET", b"k", b"v"]).await?;
    assert_eq!(one.keys().await?, [b"k"]);
    assert!(two.keys().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn kill_and_restart_keep_the_data() -> Result {
    let redis = Redis::start().await?;
    let (addr, pid) = (redis.addr(), redis.pid());
    redis.command(&[b"SET", b"k", b"v"]).await?;
    redis.kill();
    assert!(!is_open(addr));
    assert_eq!(state_of(pid), None, "not even a zombie is left");
    assert!(matches!(redis.command(&[b"PING"]).await, Err(LabError::Io { .. })));
    redis.restart().await?;
    assert_eq!((redis.addr(), redis.pid() == pid), (addr, false));
    assert_eq!(redis.command(&[b"GET", b"k"]).await?, "v");
    redis.restart().await?; // also while it runs
    assert_eq!(redis.command(&[b"GET", b"k"]).await?, "v");
    Ok(())
}

#[tokio::test]
async fn a_stopped_server_can_be_restarted() -> Result {
    let redis = Redis::start().await?;
    redis.stop();
    redis.restart().await?;
    assert_eq!(redis.command(&[b"PING"]).await?, "PONG");
    Ok(())
}

#[tokio::test]
async fn in_memory_forgets_at_a_restart() -> Result {
    let redis = Redis::builder().in_memory().start().await?;
    redis.command(&[b"SET", b"k", b"v"]).await?;
    redis.restart().await?;
    assert!(redis.keys().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_stopped_server_is_silent_until_it_is_resumed() -> Result {
    let redis = Redis::start().await?;
    redis.stop();
    eventually("the process is stopped", || state_of(redis.pid()) == Some('T')).await;
    let mut client = TcpStream::connect(redis.addr()).await?;
    client.write_all(b"PING\r\n").await?;
    let mut reply = [0; 7];
    assert!(timeout(MOMENT, client.read_exact(&mut reply)).await.is_err());
    redis.resume();
    timeout(PATIENCE, client.read_exact(&mut reply)).await??;
    assert_eq!(&reply, b"+PONG\r\n");
    Ok(())
}

#[tokio::test]
async fn a_password_is_demanded_and_part_of_the_url() -> Result {
    let redis = Redis::builder().password("se@cret").start().await?;
    assert_eq!(redis.url(), format!("redis://:se%40cret@{}", redis.addr()));
    assert_eq!(redis.command(&[b"PING"]).await?, "PONG");
    assert_eq!(redis.counters().await?.get("cmd.auth"), 0);
    let mut stranger = TcpStream::connect(redis.addr()).await?;
    stranger.write_all(b"PING\r\n").await?;
    let mut reply = [0; 7];
    stranger.read_exact(&mut reply).await?;
    assert_eq!(&reply, b"-NOAUTH");
    Ok(())
}

#[tokio::test]
async fn counts_what_clients_do() -> Result {
    let redis = Redis::start().await?;
    let mut subscriber = TcpStream::connect(redis.addr()).await?;
    subscriber.write_all(b"SUBSCRIBE news\r\n").await?;
    subscriber.read_u8().await?; // the reply: it is subscribed
    let before = redis.counters().await?;
    redis.command(&[b"SET", b"a", b"1"]).await?;
    redis.command(&[b"SET", b"b", b"1"]).await?;
    redis.command(&[b"EVAL", b"return 1", b"0"]).await?;
    let now = redis.counters().await?;
    assert_eq!((now.get("pubsub_channels"), now.get("pubsub_clients")), (1, 1));
    let after = now.since(&before);
    assert_eq!((after.get("cmd.set"), after.get("cmd.eval"), after.get("keys")), (2, 1, 2));
    let commands: Vec<_> = after.iter().filter(|(key, _)| key.starts_with("cmd.")).collect();
    assert_eq!(commands, [("cmd.eval", 1), ("cmd.set", 2)], "the asking itself is left out");
    Ok(())
}

#[tokio::test]
async fn an_error_reply_is_an_error() -> Result {
    let redis = Redis::start().await?;
    let error = redis.command(&[b"NONSENSE"]).await.unwrap_err();
    assert!(error.to_string().contains("unknown command"), "{error}");
    Ok(())
}
