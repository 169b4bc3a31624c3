//! Bad input, and servers that cannot be reached.

use std::time::Duration;

use lock_core::{Error, Result};
use lock_zk::{
    ZkLock,
    client::{Acl, Acls, AuthId, Client, CreateMode, Permission},
};

use crate::support::{bounded::bounded, *};

const PAGE: &str = include_str!("../../docs/stores/zookeeper.md");

async fn refused(url: &str) -> Error {
    let connect = bounded(url, Duration::from_secs(5), driver(url));
    let result: Result<ZkLock> = connect.await;
    result.expect_err(url)
}

#[tokio::test]
async fn a_refused_connection_is_an_error_with_the_address() {
    let server = server().await;
    let proxy = proxy(&server).await;
    proxy.refuse();
    let error = refused(&server.url_via(&proxy)).await;
    assert!(is_unavailable(&error), "{error}");
    let text = error.to_string();
    assert!(text.contains("127.0.0.1") && text.contains("refused"), "{text}");
}

#[tokio::test]
async fn a_silent_server_is_unavailable() {
    let server = server().await;
    let proxy = proxy(&server).await;
    proxy.cut();
    let error = refused(&server.url_via(&proxy)).await;
    assert!(is_unavailable(&error) && error.to_string().contains("no answer"), "{error}");
}

#[tokio::test]
async fn one_of_several_hosts_is_enough() {
    let server = server().await;
    let (dead, silent) = (proxy(&server).await, proxy(&server).await);
    dead.refuse();
    silent.cut();
    let live = server.addr();
    let locks = open(&format!("zookeeper://{},{live}", dead.addr())).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    // Which host the client tries first must not matter.
    open(&format!("zookeeper://{},{live}?ttl=10s", silent.addr())).await;
}

/// After an outage all clients come back at once, and the servers are slow.
#[tokio::test]
async fn servers_that_are_slow_get_one_session_of_a_client() {
    let server = server().await;
    let slow = [proxy(&server).await, proxy(&server).await, proxy(&server).await];
    slow.iter().for_each(|slow| slow.delay(Duration::from_millis(300)));
    let hosts = slow.each_ref().map(|slow| slow.addr().to_string()).join(",");
    let locks = open(&format!("zookeeper://{hosts}?ttl=10s&connect_timeout=30s")).await;
    let sessions = server.counters().await.unwrap().get("sessions");
    assert_eq!(sessions, 1, "{locks:?}");
}

#[tokio::test]
async fn a_server_that_is_no_zookeeper_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("zookeeper://{}", listener.local_addr().unwrap());
    let web = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad\r\n").await;
        }
    });
    let error = refused(&url).await;
    assert!(error.to_string().contains("ZooKeeper"), "{error}");
    web.abort();
}

#[tokio::test]
async fn wrong_urls_are_refused() {
    for url in ["zookeeper://h?retries=3", "zookeeper://h?ttl=15", "zookeeper://h?prefix=x"] {
        refused(url).await;
    }
    let server = shared().await;
    let error = refused(&format!("{}/no/such/chroot", server.url())).await;
    assert!(matches!(&error, Error::Misconfigured { .. }), "{error}");
    assert!(error.to_string().contains("create /no/such/chroot"), "{error}");
}

#[tokio::test]
async fn a_tick_is_not_made_shorter_than_what_the_servers_tell() {
    let server = shared().await;
    let told = open(&server.url()).await;
    let wished = open(&format!("{}?tick=100ms", server.url())).await;
    let (told, wished) = (told.guarantees(), wished.guarantees());
    assert_eq!(wished.expiry_slack, told.expiry_slack);
    let has = |cautions: &[String]| cautions.iter().any(|caution| caution.contains("tick=100ms"));
    assert!(has(&wished.cautions) && !has(&told.cautions), "{:?}", wished.cautions);
    let longer = open(&format!("{}?tick=2s", server.url())).await;
    assert!(longer.guarantees().expiry_slack > told.expiry_slack);
}

#[tokio::test]
async fn a_chroot_holds_all_locks() {
    let server = shared().await;
    let (raw, root) = (raw(server).await, fresh("root"));
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    raw.create(&format!("/{root}"), b"", &persistent).await.unwrap();
    let locks = open(&format!("{}/{root}", server.url())).await;
    let first = locks.lock("a").unwrap().acquire().await.unwrap();
    assert_eq!(children(&raw, &format!("/{root}/locks/a")).await.len(), 1);
    let second = queue_up(&locks, locks.lock("a").unwrap(), "a", 1).await;
    first.release().await.unwrap();
    drop(soon("the waiter holds", second).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_wrong_password_is_denied() {
    let server = server().await;
    let with =
        |login: &str, options: &str| format!("zookeeper://{login}{}{options}", server.addr());
    let ours = open(&with("me:right@", "?acl=creator")).await;
    let guard = ours.lock("secret").unwrap().acquire().await.unwrap();
    for login in ["me:inc0rrect@", ""] {
        let error = refused(&with(login, "")).await;
        assert!(matches!(error, Error::Denied { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("inc0rrect"));
    }
    let again = open(&with("me:right@", "?acl=creator")).await;
    assert!(again.lock("secret").unwrap().try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_directory_that_we_may_not_use_is_denied_and_nothing_remains() {
    let server = shared().await;
    let (raw, name) = (raw(server).await, fresh("denied"));
    let locks = open(&server.url()).await;
    raw.auth("digest", b"them:secret").await.unwrap();
    let theirs = CreateMode::Persistent.with_acls(Acls::creator_all());
    let open = CreateMode::Container.with_acls(Acls::anyone_all());
    match raw.mkdir("/locks", &open).await {
        Ok(()) | Err(lock_zk::client::Error::NodeExists) => {}
        Err(error) => panic!("{error}"),
    }
    raw.create(&format!("/locks/{name}"), b"", &theirs).await.unwrap();
    let error = locks.lock(&name).unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(children(&raw, &format!("/locks/{name}")).await.is_empty());
}

#[tokio::test]
async fn an_unreachable_login_is_not_in_the_debug_output() {
    let config = lock_core::StoreUrl::parse("zookeeper://me:secret@127.0.0.1:1").unwrap();
    let config = lock_zk::ZkConfig::from_url(&config).unwrap();
    assert!(!format!("{config:?}").contains("secret"));
    let error = ZkLock::connect(config).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
    // The client crate is public, so that programs can compare with it.
    let _ = Client::connector();
}

#[tokio::test]
async fn servers_that_are_slower_than_a_short_ttl_likes_get_one_session_too() {
    let server = server().await;
    let slow = [proxy(&server).await, proxy(&server).await, proxy(&server).await];
    // The way there and back takes 0.8 s; with three hosts a TTL of 4 s allowed 0.67 s.
    slow.iter().for_each(|slow| slow.delay(Duration::from_millis(400)));
    let hosts = slow.each_ref().map(|slow| slow.addr().to_string()).join(",");
    let locks = open(&format!("zookeeper://{hosts}?ttl=4s&connect_timeout=30s")).await;
    assert_eq!(server.counters().await.unwrap().get("sessions"), 1, "{locks:?}");
}

/// The rights that `docs/stores/zookeeper.md` names, and no others.
#[tokio::test]
async fn the_documented_rights_are_enough() {
    assert!(PAGE.contains("to create, read, write and delete nodes below the prefix"));
    let server = shared().await;
    let (raw, own) = (raw(server).await, fresh("own"));
    raw.auth("digest", b"app:s3cret").await.unwrap();
    let rights = Permission::CREATE | Permission::READ | Permission::WRITE | Permission::DELETE;
    let acls = [Acl::new(rights, AuthId::new("auth", ""))];
    let limited = CreateMode::Persistent.with_acls(Acls::new(&acls));
    raw.create(&format!("/{own}"), b"", &limited).await.unwrap();
    let url = |login: &str| format!("zookeeper://{login}{}?prefix=/{own}", server.addr());
    let locks = open(&url("app:s3cret@")).await;
    let first = locks.lock("a").unwrap().acquire().await.unwrap();
    let second = queue_up(&locks, locks.lock("a").unwrap(), "a", 1).await;
    first.release().await.unwrap();
    soon("the waiter holds", second).await.unwrap().unwrap().release().await.unwrap();
    let error = refused(&url("")).await;
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

#[tokio::test]
async fn the_right_that_a_login_lacks_is_named() {
    let server = shared().await;
    for (lacking, words) in [
        (Permission::READ, "may not read nodes below the prefix"),
        (Permission::CREATE, "may not create nodes below the prefix"),
        (Permission::DELETE, "may not delete nodes below the prefix"),
    ] {
        let (raw, own) = (raw(server).await, fresh("own"));
        raw.auth("digest", b"app:s3cret").await.unwrap();
        let all = [Permission::READ, Permission::CREATE, Permission::WRITE, Permission::DELETE];
        let rights = all.into_iter().filter(|right| *right != lacking);
        let rights = rights.fold(Permission::NONE, |some, right| some | right);
        let acls = [Acl::new(rights, AuthId::new("auth", ""))];
        let limited = CreateMode::Persistent.with_acls(Acls::new(&acls));
        raw.create(&format!("/{own}"), b"", &limited).await.unwrap();
        let url = format!("zookeeper://app:s3cret@{}?prefix=/{own}", server.addr());
        let error = match lacking {
            Permission::READ => refused(&url).await,
            Permission::CREATE => {
                open(&url).await.lock("a").unwrap().acquire().await.map(drop).unwrap_err()
            }
            _ => {
                // A directory that the driver makes gives its login all rights.
                raw.create(&format!("/{own}/a"), b"", &limited).await.unwrap();
                let locks = open(&url).await;
                let guard = locks.lock("a").unwrap().acquire().await.unwrap();
                guard.release().await.unwrap_err()
            }
        };
        assert!(matches!(error, Error::Denied { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// A server that permits the commands of `docs/stores/zookeeper.md` alone tells as much as one that
/// permits all.
#[tokio::test]
async fn the_documented_commands_tell_all() {
    let (_, permitted) = PAGE.split_once("`4lw.commands.whitelist=").expect("the setting");
    let (permitted, _) = permitted.split_once('`').expect("its end");
    let server = started(lab().setting("4lw.commands.whitelist", permitted)).await;
    let [few, all] = [open(&server.url()).await, open(&shared().await.url()).await];
    let [few, all] = [few.guarantees(), all.guarantees()];
    assert_eq!((few.expiry_slack, &few.ttl), (all.expiry_slack, &all.ttl));
    assert_eq!(few.cautions, all.cautions);
}
