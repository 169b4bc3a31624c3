//! Logins, rights, and what a majority refuses.

use std::time::Duration;

use lock_core::Error;
use lock_lab::{Authority, Redis};

use crate::lab::{bounded::bounded, majority::*, until, within};

async fn on_all(five: &Five, command: &str) {
    for node in five.nodes.iter() {
        let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
        node.command(&words).await.unwrap();
    }
}

/// Ends all connections of clients.
async fn disconnect(node: &Redis) {
    node.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal", b"SKIPME", b"yes"]).await.unwrap();
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let five = Five::own().await;
    let page = include_str!("../../docs/stores/redlock.md");
    let user = page.lines().find(|line| line.starts_with("ACL SETUSER few ")).unwrap();
    on_all(&five, &user.replace("SECRET", "s3cret")).await;
    let url = format!("redlock://few:s3cret@{}?prefix=app:", five.urls().join(","));
    let locks = try_locks(&url).await.unwrap();
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    guard.renew().await.unwrap();
    assert_eq!(locks.names("").await.unwrap().len(), 1);
    assert_eq!(locks.inspect("orders").await.unwrap().len(), 1);
    // A broken connection is replaced, and the lock stays.
    for node in five.nodes.iter() {
        disconnect(node).await;
    }
    within(async { while guard.renew().await.is_err() {} }).await;
    guard.release().await.unwrap();
    five.nothing_is_left_for(LONG).await;
    let _held = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    locks.close().await.unwrap();
    let (other, closed) = (try_locks(&url).await.unwrap(), clock());
    let _next = within(other.lock("orders").unwrap().ttl(LONG).acquire()).await.unwrap();
    assert!(clock().since(closed) < LONG / 2);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let five = Five::own().await;
    on_all(&five, "ACL SETUSER few on >s3cret ~* +@all").await;
    let url = format!("redlock://few:wr0ng@{}", five.urls().join(","));
    let connect = bounded("a wrong password", Duration::from_secs(5), try_locks(&url));
    let error = connect.await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let shown = format!("{} {error:?}", error_chain(&error));
    assert!(shown.contains("authentication failed") && !shown.contains("wr0ng"), "{shown}");
}

#[tokio::test]
async fn a_password_is_rotated_while_a_lock_is_held() {
    let five = Five::own().await;
    on_all(&five, "ACL SETUSER few on >first ~* +@all").await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first\n").unwrap();
    let path = file.path().display();
    let url = format!("redlock://few@{}?password_file={path}", five.urls().join(","));
    let locks = try_locks(&url).await.unwrap();
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    on_all(&five, "ACL SETUSER few resetpass >second").await;
    std::fs::write(file.path(), "second\n").unwrap();
    for node in five.nodes.iter() {
        disconnect(node).await;
    }
    // Long before a renewal by its time.
    let before = clock();
    within(async { while guard.renew().await.is_err() {} }).await;
    assert!(clock().since(before) < LONG / 6, "{:?}", clock().since(before));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn another_user_takes_over_while_a_lock_is_held() {
    let five = Five::own().await;
    on_all(&five, "ACL SETUSER few on >first ~* +@all").await;
    let [user, password] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    std::fs::write(user.path(), "few\n").unwrap();
    std::fs::write(password.path(), "first\n").unwrap();
    let (user_file, password_file) = (user.path().display(), password.path().display());
    let hosts = five.urls().join(",");
    let url = format!("redlock://{hosts}?user_file={user_file}&password_file={password_file}");
    let locks = try_locks(&url).await.unwrap();
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    on_all(&five, "ACL SETUSER next on >second ~* +@all").await;
    std::fs::write(user.path(), "next\n").unwrap();
    std::fs::write(password.path(), "second\n").unwrap();
    on_all(&five, "ACL DELUSER few").await;
    // Long before a renewal by its time.
    let before = clock();
    within(async { while guard.renew().await.is_err() {} }).await;
    assert!(clock().since(before) < LONG / 6, "{:?}", clock().since(before));
    locks.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn five_servers_with_tls_and_a_login_keep_a_lock() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let builder = Redis::builder().in_memory().user("app", "p455word");
    let five = Five::with(builder.tls(issued.certificate(), issued.key()), 5).await.unwrap();
    let url = |authority: &Authority| {
        let (hosts, ca) = (five.urls().join(","), authority.file().display());
        format!("redlock://app:p455word@{hosts}?tls=verify&ca={ca}")
    };
    let locks = try_locks(&url(&authority)).await.unwrap();
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    guard.renew().await.unwrap();
    guard.release().await.unwrap();
    five.nothing_is_left_for(LONG).await;
    for wrong in [url(&other), format!("redlock://app:p455word@{}", five.urls().join(","))] {
        let connect = bounded("no trust", Duration::from_secs(5), try_locks(&wrong));
        let error = connect.await.unwrap_err();
        let shown = format!("{} {error:?}", error_chain(&error));
        assert!(shown.contains("TLS") && !shown.contains("p455word"), "{shown}");
    }
}

#[tokio::test]
async fn settings_that_weaken_locks_are_told_at_connect() {
    let five = Five::own().await;
    five.nodes[1].command(&[b"CONFIG", b"SET", b"maxmemory-policy", b"allkeys-lru"]).await.unwrap();
    let cautions = five.locks().await.guarantees().cautions.clone();
    assert_eq!(cautions.len(), 2, "{cautions:?}");
    let port = five.nodes[1].addr().port().to_string();
    assert!(cautions[0].contains("allkeys-lru") && cautions[0].contains(&port), "{cautions:?}");
    // The lab's servers in memory write no file.
    assert!(cautions[1].contains("appendonly is no on 5 of 5"), "{cautions:?}");
}

#[tokio::test]
async fn other_kinds_are_refused_with_the_reason() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let refused = [
        locks.shared("orders").err(),
        locks.semaphore("orders", 2).err(),
        locks.election("orders").err(),
    ];
    for error in refused {
        let error = error.expect("it must be refused");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("one holder only"), "{error}");
    }
    let floor = locks.token_floor().await.unwrap_err().to_string();
    assert!(floor.contains("no step is atomic on all servers"), "{floor}");
}

#[tokio::test]
async fn a_ttl_above_the_deployments_is_refused() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let too_long = locks.lock("orders").unwrap().ttl(Duration::from_secs(61)).acquire().await;
    assert!(too_long.unwrap_err().to_string().contains("1m"), "it names the longest");
}

#[tokio::test]
async fn a_server_that_is_not_independent_is_refused() {
    let five = Five::own().await;
    let port = five.nodes[0].addr().port().to_string();
    for node in &five.nodes[1..4] {
        node.command(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]).await.unwrap();
    }
    let error = five.try_locks().await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
    let text = error_chain(&error);
    assert_eq!(text.matches("it is a replica").count(), 3, "{text}");
}

#[tokio::test]
async fn a_close_gives_every_lock_back() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let guards = futures_util::future::join_all(
        (0..20).map(|n| locks.lock(format!("orders-{n}")).unwrap().ttl(LONG).acquire()),
    )
    .await;
    assert!(guards.iter().all(Result::is_ok));
    until(async || five.left_behind().await.len() == 100).await;
    locks.close().await.unwrap();
    five.nothing_is_left_for(LONG).await;
    assert!(matches!(locks.lock("x").unwrap().acquire().await, Err(Error::Closed { .. })));
}

/// An attempt that is given up at any moment leaves nothing, also on a server that is slow.
#[tokio::test]
async fn an_attempt_that_is_dropped_leaves_nothing() {
    let five = Five::lent().await;
    let far = Far::of(&five).await;
    far.proxies[2].delay(Duration::from_millis(30));
    far.proxies[4].delay(Duration::from_millis(90));
    for round in 0..20 {
        let acquire = far.locks.lock("orders").unwrap().ttl(LONG).acquire();
        let _ = tokio::time::timeout(Duration::from_millis(round * 8), acquire).await;
    }
    five.nothing_is_left_for(LONG).await;
}
