//! TLS and logins: what works, and the errors of what does not.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::Error;
use lock_lab::{Authority, Builder, Proxy, Redis, RedisCluster, RedisSentinels};
use lock_redis::RedisLock;

use crate::lab::{self, bounded::bounded, *};

const TTL: Duration = Duration::from_secs(12);
/// Every error at connect comes sooner.
const SOON: Duration = Duration::from_secs(5);

async fn encrypted(authority: &Authority) -> Redis {
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let builder = Redis::builder().appendonly(false).user("app", "p455word");
    builder.tls(issued.certificate(), issued.key()).start().await.unwrap()
}

fn verified(authority: &Authority) -> String {
    format!("tls=verify&ca={}", authority.file().display())
}

async fn say(server: &Redis, words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
    server.command(&words).await.unwrap()
}

/// Returns the text of the error, which names nothing secret and comes in time.
async fn refused(url: &str) -> (Error, String) {
    let error = bounded("a refused connect", SOON, try_driver(url)).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("p455word") && !shown.contains("wr0ng"), "{shown}");
    (error, shown)
}

async fn works(driver: &RedisLock) {
    acquire(driver, "orders", TTL).await.unwrap().release().await.unwrap();
}

/// The server's own text shows the command that it does not know, with the password.
#[tokio::test]
async fn a_server_without_resp3_is_refused_and_serves_the_simple_mode() {
    let builder = Redis::builder().appendonly(false).user("app", "p455word");
    let words = ["--rename-command", "HELLO", ""];
    let server = words.into_iter().fold(builder, Builder::arg).start().await.unwrap();
    let (error, text) = refused(&server.url()).await;
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    assert!(text.contains("RESP3") && text.contains("mode=simple"), "{text}");
    works(&*driver(&format!("{}?mode=simple", server.url())).await).await;
}

/// Over TLS, such a server ends a connection without a word. A client opens none for a request.
#[tokio::test]
async fn a_client_keeps_its_connections_at_a_server_that_takes_no_more() {
    let authority = Authority::new().unwrap();
    let server = encrypted(&authority).await;
    let url = format!("{}?{}&wait_replicas=1", server.url(), verified(&authority));
    let client = driver(&url).await;
    assert_eq!(say(&server, &["CONFIG", "SET", "maxclients", "1"]).await, "OK");
    for _ in 0..2 {
        let short = acquire(&client, "orders", TTL).await.unwrap_err();
        assert!(short.to_string().contains("only 0 of 1 replicas"), "{short}");
    }
}

#[tokio::test]
async fn each_wrong_certificate_is_named_in_time() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let server = encrypted(&authority).await;
    let (url, good) = (server.url(), verified(&authority));
    works(&*driver(&format!("{url}?{good}")).await).await;
    let (error, text) = refused(&format!("{url}?{}", verified(&other))).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(text.contains("TLS handshake") && text.contains("invalid peer certificate"), "{text}");
    let (error, text) = refused(&format!("{url}?{good}&server_name=other.example")).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(text.contains("other.example"), "{text}");
    let (_, text) = refused(&format!("{url}?tls=verify&ca=/nowhere.pem")).await;
    assert!(text.contains("not readable") && text.contains("/nowhere.pem"), "{text}");
    let issued = authority.expired(&["127.0.0.1"]).unwrap();
    let builder = Redis::builder().appendonly(false).tls(issued.certificate(), issued.key());
    let expired = builder.start().await.unwrap();
    let (error, text) = refused(&format!("{}?{good}", expired.url())).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(text.to_lowercase().contains("expired"), "{text}");
}

#[tokio::test]
async fn rediss_and_valkeys_mean_tls_with_a_check_of_the_certificate() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let server = encrypted(&authority).await;
    let url = server.url();
    let (_, rest) = url.split_once("://").unwrap();
    for scheme in ["rediss", "valkeys"] {
        let with =
            |authority: &Authority| format!("{scheme}://{rest}?ca={}", authority.file().display());
        works(&*driver(&with(&authority)).await).await;
        let (_, text) = refused(&with(&other)).await;
        assert!(text.contains("invalid peer certificate"), "{text}");
    }
}

#[tokio::test]
async fn plain_text_to_a_tls_port_and_the_reverse_are_named_in_time() {
    let authority = Authority::new().unwrap();
    let server = encrypted(&authority).await;
    let (_, text) = refused(&server.url()).await;
    assert!(text.contains("does it expect TLS"), "{text}");
    let plain = lab::server().await;
    let (_, text) = refused(&format!("{}?{}", plain.url(), verified(&authority))).await;
    assert!(text.contains("does the server speak TLS on this port"), "{text}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_when_it_is_demanded() {
    let authority = Authority::new().unwrap();
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let builder = Redis::builder().appendonly(false).tls(issued.certificate(), issued.key());
    let server = builder.client_authority(authority.certificate()).start().await.unwrap();
    let url = format!("{}?{}", server.url(), verified(&authority));
    let (error, text) = refused(&url).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(text.to_lowercase().contains("certificate"), "{text}");
    let client = authority.client("app").unwrap();
    let [cert, key] = client.files().map(Path::display);
    works(&*driver(&format!("{url}&cert={cert}&key={key}")).await).await;
}

#[tokio::test]
async fn a_wrong_login_is_denied_in_time_and_not_shown() {
    let authority = Authority::new().unwrap();
    let server = encrypted(&authority).await;
    let (addr, good) = (server.addr(), verified(&authority));
    for login in ["app:wr0ng@", "nobody:p455word@", ""] {
        let (error, _) = refused(&format!("redis://{login}{addr}?{good}")).await;
        assert!(matches!(error, Error::Denied { .. }), "{login} {error:?}");
    }
    let missing = format!("redis://app@{addr}?{good}&password_file=/nowhere");
    let (error, text) = refused(&missing).await;
    assert!(matches!(error, Error::InvalidOption { .. }), "{error:?}");
    assert!(text.contains("/nowhere"), "{text}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_after_the_configured_time() {
    let server = lab::server().await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.cut();
    let url = format!("{}?connect_timeout=300ms", server.url_via(&proxy));
    let refused = bounded("a silent server", Duration::from_secs(2), try_driver(&url)).await;
    assert!(is_unavailable(&refused));
}

/// Changes the password of `app` on these servers and in the file, and ends all its connections,
/// before or after the file is written. Before it, logins are refused.
async fn rotate(servers: &[&Redis], file: &Path, (from, to): (&str, &str), late: bool) {
    let write = || std::fs::write(file, format!("{to}\n")).unwrap();
    for server in servers {
        let (new, old) = (format!(">{to}"), format!("<{from}"));
        say(server, &["ACL", "SETUSER", "app", &new, &old]).await;
        say(server, &["ACL", "LOG", "RESET"]).await;
    }
    if !late {
        write();
    }
    for server in servers {
        say(server, &["CLIENT", "KILL", "USER", "app"]).await;
    }
    if late {
        logged(servers, "auth").await;
        write();
    }
}

/// Waits until a server's log of refusals says this.
async fn logged(servers: &[&Redis], word: &str) {
    until(async || {
        let logs = servers.iter().map(|server| server.command(&[b"ACL", b"LOG"]));
        join_all(logs).await.into_iter().any(|log| log.unwrap().contains(word))
    })
    .await;
}

async fn keeps_its_locks(client: &Arc<RedisLock>, servers: &[&Redis], file: &Path) {
    let held = acquire(client, "held", TTL).await.unwrap();
    let shared = acquire_as(lock_core::Kind::Shared, client, "shared", TTL).await.unwrap();
    for (passwords, late) in [(("p455word", "second"), false), (("second", "third"), true)] {
        rotate(servers, file, passwords, late).await;
        within(held.renew()).await.unwrap();
        within(shared.renew()).await.unwrap();
        works(client).await;
    }
    assert_eq!((held.validity().loss(), shared.validity().loss()), (None, None));
    held.release().await.unwrap();
    shared.release().await.unwrap();
}

#[tokio::test]
async fn a_rotated_password_loses_no_lock() {
    let authority = Authority::new().unwrap();
    let server = encrypted(&authority).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "p455word\n").unwrap();
    let (addr, good) = (server.addr(), verified(&authority));
    let url = format!("redis://app@{addr}?{good}&password_file={}", file.display());
    keeps_its_locks(&driver(&url).await, &[&server], &file).await;
    nothing_is_left(&server).await;
}

/// The files of a user and of its password.
struct Login(tempfile::TempDir);

impl Login {
    fn new(user: &str, password: &str) -> Self {
        let login = Self(tempfile::tempdir().unwrap());
        login.write("user", user);
        login.write("password", password);
        login
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(file), format!("{text}\n")).unwrap();
    }

    /// The options that name the files; `of` stands before each.
    fn options(&self, of: &str) -> String {
        let [user, password] = ["user", "password"].map(|file| self.0.path().join(file));
        format!("{of}user_file={}&{of}password_file={}", user.display(), password.display())
    }
}

/// Adds a user with the rights of `app`.
async fn add_user(server: &Redis, user: &str, password: &str) {
    let password = format!(">{password}");
    say(server, &["ACL", "SETUSER", user, "on", &password, "~*", "&*", "+@all"]).await;
}

/// Another user takes the place of `app`, which is removed with all its connections before the
/// password's file is written.
async fn keeps_its_locks_under_another_user(
    client: &Arc<RedisLock>,
    servers: &[&Redis],
    login: &Login,
) {
    let held = acquire(client, "held", TTL).await.unwrap();
    let shared = acquire_as(lock_core::Kind::Shared, client, "shared", TTL).await.unwrap();
    for server in servers {
        add_user(server, "next", "second").await;
        say(server, &["ACL", "LOG", "RESET"]).await;
    }
    login.write("user", "next");
    for server in servers {
        say(server, &["ACL", "DELUSER", "app"]).await;
    }
    // The new user with the old password is refused.
    logged(servers, "next").await;
    login.write("password", "second");
    within(async { while held.renew().await.is_err() {} }).await;
    within(async { while shared.renew().await.is_err() {} }).await;
    works(client).await;
    assert_eq!((held.validity().loss(), shared.validity().loss()), (None, None));
    held.release().await.unwrap();
    shared.release().await.unwrap();
}

#[tokio::test]
async fn another_user_takes_over_and_no_lock_is_lost() {
    let authority = Authority::new().unwrap();
    let server = encrypted(&authority).await;
    // The lab itself has a user of its own.
    let login = Login::new("app", "p455word");
    let url = format!("redis://{}?{}&{}", server.addr(), verified(&authority), login.options(""));
    keeps_its_locks_under_another_user(&driver(&url).await, &[&server], &login).await;
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn another_user_takes_over_at_servers_and_sentinels() {
    let builder = RedisSentinels::builder().in_memory().down_after(Duration::from_millis(800));
    let redis = builder.user("app", "p455word").start().await.unwrap();
    let (login, own) = (Login::new("app", "p455word"), Login::new("app", "p455word"));
    let sentinels: Vec<_> = redis.sentinel_addrs().iter().map(ToString::to_string).collect();
    let url = format!(
        "redis+sentinel://{}/lab?{}&{}",
        sentinels.join(","),
        login.options(""),
        own.options("sentinel_")
    );
    let client = driver(&url).await;
    let nodes: Vec<_> = redis.nodes().iter().collect();
    keeps_its_locks_under_another_user(&client, &nodes, &login).await;

    let rights = ["on", ">second", "~*", "&*", "+@all"];
    for sentinel in redis.sentinels() {
        for words in [&["ACL", "SETUSER", "next"][..], &["ACL", "DELUSER", "app"]] {
            let rights: &[&str] = if words[1] == "SETUSER" { &rights } else { &[] };
            let words: Vec<_> = words.iter().chain(rights).map(|word| word.as_bytes()).collect();
            sentinel.command(&words).await.unwrap();
        }
    }
    own.write("user", "next");
    own.write("password", "second");
    let held = acquire(&client, "orders", TTL * 4).await.unwrap();
    redis.node(0).kill();
    redis.primary_after(0).await.unwrap();
    within(async { while held.renew().await.is_err() {} }).await;
    assert_eq!(held.validity().loss(), None);
    driver(&url).await;
    held.release().await.unwrap();
}

#[tokio::test]
async fn another_user_takes_over_in_a_cluster() {
    let builder = RedisCluster::builder().in_memory().user("app", "p455word");
    let redis = builder.start().await.unwrap();
    let login = Login::new("app", "p455word");
    let url = format!("redis+cluster://{}?{}", redis.node(0).addr(), login.options(""));
    let nodes: Vec<_> = redis.nodes().iter().collect();
    keeps_its_locks_under_another_user(&driver(&url).await, &nodes, &login).await;
}

#[tokio::test]
async fn sentinels_with_tls_and_logins_lead_to_the_primary() {
    let authority = Authority::new().unwrap();
    let builder = RedisSentinels::builder().in_memory().down_after(Duration::from_millis(800));
    let builder = builder.tls(&authority).unwrap().user("app", "p455word");
    let redis = builder.start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [file, own] = ["password", "sentinels"].map(|name| folder.path().join(name));
    std::fs::write(&file, "p455word").unwrap();
    std::fs::write(&own, "p455word").unwrap();
    let sentinels: Vec<_> = redis.sentinel_addrs().iter().map(ToString::to_string).collect();
    let base = format!("redis+sentinel://app@{}/lab?{}", sentinels.join(","), verified(&authority));
    let url = format!("{base}&password_file={}", file.display());
    let (error, text) = refused(&url).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(text.contains("sentinel"), "{text}");
    let url = format!("{url}&sentinel_user=app&sentinel_password_file={}", own.display());
    let client = driver(&format!("{url}&wait_replicas=2")).await;
    keeps_its_locks(&client, &redis.nodes().iter().collect::<Vec<_>>(), &file).await;
    let held = acquire(&client, "orders", TTL * 4).await.unwrap();
    redis.node(0).kill();
    redis.primary_after(0).await.unwrap();
    let other = driver(&url).await;
    assert!(is_contended(&try_acquire(&other, "orders", TTL).await));
    assert_eq!(held.validity().loss(), None);
}

#[tokio::test]
async fn a_cluster_with_tls_and_logins_keeps_its_locks() {
    let authority = Authority::new().unwrap();
    let builder = RedisCluster::builder().in_memory().user("app", "p455word");
    let redis = builder.tls(&authority).unwrap().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "p455word").unwrap();
    let (addr, good) = (redis.node(0).addr(), verified(&authority));
    let stranger = Authority::new().unwrap();
    let other = verified(&stranger);
    for (login, certificates, word) in [
        ("app:wr0ng@", good.as_str(), "denied connect"),
        ("app:p455word@", &other, "invalid peer certificate"),
        ("app:p455word@", "tls=off", "does it expect TLS"),
    ] {
        let (_, text) = refused(&format!("redis+cluster://{login}{addr}?{certificates}")).await;
        assert!(text.contains(word), "{text}");
    }
    let url = format!("redis+cluster://app@{addr}?{good}&password_file={}", file.display());
    let client = driver(&url).await;
    keeps_its_locks(&client, &redis.nodes().iter().collect::<Vec<_>>(), &file).await;
    let slot = RedisCluster::slot_of(b"orders");
    let (held, old) = (acquire(&client, "orders", TTL * 4).await.unwrap(), redis.owner(slot).await);
    let old = old.unwrap();
    redis.migrate(slot, (old + 1) % RedisCluster::PRIMARIES).await.unwrap();
    within(held.renew()).await.unwrap();
    let new = redis.owner(slot).await.unwrap();
    redis.await_replicas().await.unwrap();
    redis.node(new).kill();
    redis.owner_after(new, slot).await.unwrap();
    within(held.renew()).await.unwrap();
    assert_eq!(held.validity().loss(), None);
    held.release().await.unwrap();
    works(&*driver(&url).await).await;
}
