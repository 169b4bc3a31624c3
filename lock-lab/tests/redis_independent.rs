//! Redis servers without a link between them.

use std::time::Duration;

use lock_lab::{IndependentRedis, LabError, Redis, Shift};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

const MINUTE: Duration = Duration::from_secs(60);

/// Takes a lock of 10 minutes at each running server, and returns the number of grants.
async fn take(nodes: &[Redis], holder: &[u8]) -> std::result::Result<usize, LabError> {
    let mut granted = 0;
    for node in nodes {
        let taken = node.command(&[b"SET", b"lock", holder, b"NX", b"PX", b"600000"]).await;
        match taken {
            Ok(reply) => granted += usize::from(reply == "OK"),
            Err(LabError::Io { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(granted)
}

#[tokio::test]
async fn five_servers_share_no_data() -> Result {
    let five = IndependentRedis::start(5).await?;
    assert_eq!((five.len(), five.places()), (5, vec![]));
    five[3].command(&[b"SET", b"key", b"value"]).await?;
    for (node, (redis, addr)) in five.iter().zip(five.addrs()).enumerate() {
        assert_eq!(redis.addr(), addr);
        assert_eq!(five.urls()[node], format!("redis://{addr}"));
        assert_eq!(redis.keys().await?.len(), usize::from(node == 3));
    }
    Ok(())
}

/// The claim that Redlock is unsafe if a clock jumps: both clients have a majority of five.
#[tokio::test]
async fn a_clock_that_jumps_expires_a_key_early_on_one_and_makes_two_majorities() -> Result {
    let five = IndependentRedis::start(5).await?;
    assert_eq!(take(&five[..3], b"A").await?, 3);
    assert_eq!(take(&five[3..], b"B").await?, 2);
    assert_eq!(take(&five, b"B").await?, 0, "no majority yet");
    five[0].move_clocks(Shift::ahead(11 * MINUTE), Shift::NONE)?;
    assert_eq!(five[0].command(&[b"GET", b"lock"]).await?, "(nil)");
    assert_eq!(five[1].command(&[b"GET", b"lock"]).await?, "A", "the other clocks stay");
    assert_eq!(take(&five[..1], b"B").await?, 1, "the third of five");
    Ok(())
}

#[tokio::test]
async fn a_clock_that_jumps_expires_a_key_early_without_files_too() -> Result {
    let five = Redis::builder().in_memory().start_independent(5).await?;
    assert_eq!(take(&five, b"A").await?, 5);
    five[4].move_clocks(Shift::ahead(11 * MINUTE), Shift::NONE)?;
    assert_eq!(take(&five, b"B").await?, 1);
    assert_eq!(five[4].command(&[b"GET", b"lock"]).await?, "B");
    Ok(())
}

#[tokio::test]
async fn two_of_five_can_die_and_come_back_with_their_data() -> Result {
    let five = IndependentRedis::start(5).await?;
    assert_eq!(take(&five, b"A").await?, 5);
    five[0].kill();
    five[1].kill();
    five[2].command(&[b"DEL", b"lock"]).await?;
    assert_eq!(take(&five, b"B").await?, 1, "two are dead, and two say no");
    five[0].restart().await?;
    assert_eq!(five[0].command(&[b"GET", b"lock"]).await?, "A");
    Ok(())
}
