//! The data on the server, letter by letter: clients of other versions read and write it, too.

use std::time::Duration;

use lock_core::{Attempt, DistributedLock, FencingToken, Kind, Lease, Request};
use lock_lab::Redis;
use lock_redis::RedisLock;

use crate::lab::*;

const TTL: Duration = Duration::from_secs(60);

/// Lists each value with its key, and with the field of a hash or the member of a set.
const DUMP: &[u8] = b"local found = {}
    local function add(key, value) table.insert(found, key .. ' = ' .. value) end
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local kind = redis.call('TYPE', key).ok
      if kind == 'string' then
        add(key, redis.call('GET', key))
      elseif kind == 'list' then
        add(key, table.concat(redis.call('LRANGE', key, 0, -1), ','))
      else
        local pairs = kind == 'hash' and redis.call('HGETALL', key)
          or redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
        for i = 1, #pairs, 2 do add(key .. ' ' .. pairs[i], pairs[i + 1]) end
      end
    end
    return (string.gsub(table.concat(found, '\\n'), '\\255', '~'))";

/// The list with the parts replaced that differ from run to run: tickets, and times, also as
/// tokens.
async fn dump(server: &Redis) -> Vec<String> {
    let text = server.command(&[b"EVAL", DUMP, b"0"]).await.unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("{distlock}"));
    let mut lines: Vec<_> = lines.map(plain).collect();
    lines.sort_unstable();
    lines
}

fn plain(line: &str) -> String {
    let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let plain = |word: &str| {
        let begin = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let end = &word[begin.len()..];
        let is_time = begin.len() == 16 && begin.bytes().all(|b| b.is_ascii_digit());
        match begin.len() {
            16 if end == ":" => "CLIENT:".to_owned(),
            16 if is_time => format!("TIME{end}"),
            32 => format!("ATTEMPT{end}"),
            _ => word.to_owned(),
        }
    };
    words.map(plain).collect()
}

async fn hold(driver: &RedisLock, request: Request) -> Box<dyn Lease> {
    within(driver.acquire(request, Attempt::new())).await.unwrap()
}

fn described(kind: Kind, holder: &str) -> Request {
    let mut request = request_of(kind, "orders", TTL);
    request.holder = holder.into();
    request
}

#[tokio::test]
async fn what_an_exclusive_lock_and_its_queue_leave_on_the_server() {
    let (server, driver) = one_driver().await;
    let held = hold(&driver, described(Kind::Exclusive, " nightly")).await;
    let waiter = Waiter::queued_as(Kind::Shared, &driver, &server, "orders", TTL).await;
    let exclusive = [
        "orders = CLIENT:ATTEMPT",
        "{orders}~fence = TIME",
        "{orders}~queue = CLIENT:ATTEMPT",
        "{orders}~waiting CLIENT:ATTEMPT = TIME 60000 TIME s ",
        "{orders}~waiting holder = CLIENT:ATTEMPT nightly",
    ];
    assert_eq!(dump(&server).await, exclusive);
    held.release().await.unwrap();
    let reader = waiter.granted().await;
    let beside = hold(&driver, described(Kind::Shared, " daily")).await;
    let shared = [
        "orders = s:TIME",
        "{orders}~fence = TIME",
        "{orders}~holders CLIENT:ATTEMPT = TIME",
        "{orders}~holders CLIENT:ATTEMPT = TIME",
        "{orders}~members CLIENT:ATTEMPT = TIME s ",
        "{orders}~members CLIENT:ATTEMPT = TIME s  daily",
        "{orders}~members group = s:TIME",
        "{orders}~members taken = 0",
    ];
    assert_eq!(dump(&server).await, shared);
    reader.release().await.unwrap();
    beside.release().await.unwrap();
    assert_eq!(dump(&server).await, ["{orders}~fence = TIME"]);
}

#[tokio::test]
async fn what_a_hand_over_of_an_exclusive_lock_leaves_on_the_server() {
    let (server, driver) = one_driver().await;
    let held = hold(&driver, described(Kind::Exclusive, " nightly")).await;
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    let last = Waiter::ask(&driver, described(Kind::Exclusive, " daily"));
    until(async || queue_length(&server, "orders").await == 2).await;
    let both = [
        "orders = CLIENT:ATTEMPT",
        "{orders}~fence = TIME",
        "{orders}~queue = CLIENT:ATTEMPT,CLIENT:ATTEMPT",
        "{orders}~waiting CLIENT:ATTEMPT = TIME 60000 TIME x ",
        "{orders}~waiting CLIENT:ATTEMPT = TIME 60000 TIME x  daily",
        "{orders}~waiting holder = CLIENT:ATTEMPT nightly",
    ];
    assert_eq!(dump(&server).await, both);
    held.release().await.unwrap();
    let next = waiter.granted().await;
    let one = [
        "orders = CLIENT:ATTEMPT",
        "{orders}~fence = TIME",
        "{orders}~queue = CLIENT:ATTEMPT",
        "{orders}~waiting CLIENT:ATTEMPT = TIME 60000 TIME x  daily",
    ];
    assert_eq!(dump(&server).await, one);
    next.release().await.unwrap();
    let last = last.granted().await;
    let alone = [
        "orders = CLIENT:ATTEMPT",
        "{orders}~fence = TIME",
        "{orders}~waiting holder = CLIENT:ATTEMPT daily",
    ];
    assert_eq!(dump(&server).await, alone);
    last.release().await.unwrap();
    assert_eq!(dump(&server).await, ["{orders}~fence = TIME"]);
}

#[tokio::test]
async fn what_permits_leave_on_the_server() {
    let (server, driver) = one_driver().await;
    let held = hold(&driver, request_of(permits(2, 3), "orders", TTL)).await;
    let waiter = Waiter::queued_as(permits(3, 3), &driver, &server, "orders", TTL).await;
    let expected = [
        "orders = p3:TIME",
        "{orders}~fence = TIME",
        "{orders}~holders CLIENT:ATTEMPT = TIME",
        "{orders}~members CLIENT:ATTEMPT = TIME p2/3 ",
        "{orders}~members group = p3:TIME",
        "{orders}~members taken = 2",
        "{orders}~queue = CLIENT:ATTEMPT",
        "{orders}~waiting CLIENT:ATTEMPT = TIME 60000 TIME p3/3 ",
    ];
    assert_eq!(dump(&server).await, expected);
    held.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
    assert_eq!(dump(&server).await, ["{orders}~fence = TIME"]);
}

#[tokio::test]
async fn what_a_leader_and_the_token_floor_leave_on_the_server() {
    let (server, driver) = one_driver().await;
    let candidate = || {
        let mut request = described(Kind::Exclusive, " me");
        request.value = Some(b" 10.0.0.7".to_vec().into());
        request
    };
    let leader = hold(&driver, candidate()).await;
    leader.publish(b"10.0.0.8").await.unwrap();
    let next = Waiter::ask(&driver, candidate());
    until(async || queue_length(&server, "orders").await == 1).await;
    let expected = [
        "orders = CLIENT:ATTEMPT",
        "{orders}~fence = TIME",
        "{orders}~leader by = CLIENT:ATTEMPT",
        "{orders}~leader database = 0",
        "{orders}~leader token = TIME",
        "{orders}~leader value = 10.0.0.8",
        "{orders}~leader version = 1",
        "{orders}~leader who =  me",
        "{orders}~queue = CLIENT:ATTEMPT",
        "{orders}~waiting CLIENT:ATTEMPT = TIME 60000 TIME e0/3  me 10.0.0.7",
    ];
    assert_eq!(dump(&server).await, expected);
    leader.release().await.unwrap();
    next.granted().await.release().await.unwrap();
    driver.raise_token_floor(FencingToken::new(4_000_000_000_000_000)).await.unwrap();
    assert_eq!(dump(&server).await, ["{orders}~fence = TIME", "~floor = TIME TIME"]);
}
