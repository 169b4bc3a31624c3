//! What is wrong with a login or a certificate is named in time, on each deployment of several
//! servers. `secure` has the same for one server.

use std::time::Duration;

use lock_core::{Error, StoreUrl};
use lock_lab::{Authority, Redis, RedisCluster, RedisSentinels};
use lock_redis::{Redlock, RedlockConfig};

use crate::lab::{bounded::bounded, *};

/// Every error at connect comes sooner.
const SOON: Duration = Duration::from_secs(5);
const LOGIN: &str = "app:p455word";

/// Whether the error is final, and a part of its text.
type Expected = (bool, &'static str);

async fn connect(url: &str) -> lock_core::Result<()> {
    if !url.starts_with("redlock") {
        return try_driver(url).await.map(drop);
    }
    Redlock::connect(RedlockConfig::from_url(&StoreUrl::parse(url)?)?).await.map(drop)
}

async fn is_refused(url: &str, (is_final, word): Expected) {
    let error = bounded(url, SOON, connect(url)).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(shown.contains(word), "{url}: {shown}");
    assert!(!shown.contains("p455word") && !shown.contains("wr0ng"), "{shown}");
    assert_eq!(matches!(error, Error::Denied { .. }), is_final, "{url}: {error:?}");
}

/// `url` makes a URL of a login and options. The servers demand TLS, and the login.
async fn each_mistake_is_named(authority: &Authority, url: impl Fn(&str, &str) -> String) {
    let stranger = Authority::new().unwrap();
    let trusts = |authority: &Authority| format!("tls=verify&ca={}", authority.file().display());
    let good = trusts(authority);
    within(connect(&url(LOGIN, &good))).await.unwrap();
    for (login, options, expected) in [
        ("app:wr0ng", good.clone(), (true, "denied connect")),
        (LOGIN, trusts(&stranger), (true, "invalid peer certificate")),
        (LOGIN, format!("{good}&server_name=other.example"), (true, "other.example")),
        (LOGIN, "tls=off".to_owned(), (false, "does it expect TLS")),
    ] {
        is_refused(&url(login, &options), expected).await;
    }
}

fn hosts(addrs: impl IntoIterator<Item = std::net::SocketAddr>) -> String {
    addrs.into_iter().map(|addr| addr.to_string()).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn each_mistake_is_named_on_sentinel() {
    let authority = Authority::new().unwrap();
    let builder = RedisSentinels::builder().in_memory().tls(&authority).unwrap();
    let redis = builder.user("app", "p455word").start().await.unwrap();
    let hosts = hosts(redis.sentinel_addrs());
    let password = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(password.path(), "p455word").unwrap();
    // The login of the sentinels is right.
    let own = format!("sentinel_user=app&sentinel_password_file={}", password.path().display());
    let url = |login: &str, options: &str| {
        format!("redis+sentinel://{login}@{hosts}/lab?{own}&{options}")
    };
    each_mistake_is_named(&authority, url).await;
}

#[tokio::test]
async fn each_mistake_is_named_in_a_cluster() {
    let authority = Authority::new().unwrap();
    let builder = RedisCluster::builder().in_memory().replicas(0).user("app", "p455word");
    let redis = builder.tls(&authority).unwrap().start().await.unwrap();
    let hosts = hosts(redis.addrs());
    let url = |login: &str, options: &str| format!("redis+cluster://{login}@{hosts}?{options}");
    each_mistake_is_named(&authority, url).await;
}

#[tokio::test]
async fn each_mistake_is_named_on_a_majority() {
    let authority = Authority::new().unwrap();
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let builder = Redis::builder().in_memory().user("app", "p455word");
    let builder = builder.tls(issued.certificate(), issued.key());
    let redis = builder.start_independent(3).await.unwrap();
    let hosts = hosts(redis.addrs());
    let url = |login: &str, options: &str| format!("redlock://{login}@{hosts}?{options}");
    each_mistake_is_named(&authority, url).await;
}

#[tokio::test]
async fn an_expired_certificate_is_named_on_a_majority() {
    let authority = Authority::new().unwrap();
    let issued = authority.expired(&["127.0.0.1"]).unwrap();
    let builder = Redis::builder().in_memory().tls(issued.certificate(), issued.key());
    let redis = builder.start_independent(3).await.unwrap();
    let ca = authority.file().display();
    let url = format!("redlock://{}?tls=verify&ca={ca}", hosts(redis.addrs()));
    is_refused(&url, (true, "xpired")).await;
}

#[tokio::test]
async fn tls_to_servers_without_it_is_named() {
    let authority = Authority::new().unwrap();
    let tls = format!("tls=verify&ca={}", authority.file().display());
    let expected = (false, "does the server speak TLS on this port");
    let sentinels = deployments::sentinels().await;
    let url = format!("redis+sentinel://{}/lab?{tls}", hosts(sentinels.sentinel_addrs()));
    is_refused(&url, expected).await;
    let cluster = deployments::cluster().await;
    is_refused(&format!("redis+cluster://{}?{tls}", hosts(cluster.addrs())), expected).await;
    let majority = Redis::builder().in_memory().start_independent(3).await.unwrap();
    is_refused(&format!("redlock://{}?{tls}", hosts(majority.addrs())), expected).await;
}
