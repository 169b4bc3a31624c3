//! Errors of connecting, and its requests.

use std::time::Duration;

use lock_core::{Effect, Error, StoreUrl};

use crate::support::{self, bounded::bounded, *};

async fn refusal(url: &str) -> Error {
    let config = lock_etcd::EtcdConfig::from_url(&StoreUrl::parse(url).unwrap()).unwrap();
    let connect = lock_etcd::EtcdLock::connect(config);
    bounded("a refused connect", Duration::from_secs(5), connect).await.unwrap_err()
}

#[tokio::test]
async fn a_port_without_a_listener_is_unavailable() {
    let error = refusal("etcd://127.0.0.1:1").await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_unavailable() {
    let error = refusal("etcd://no-such-host.invalid").await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn silent_members_are_reported_in_time() {
    let etcd = etcd().await;
    let proxy = lock_lab::Proxy::start(etcd.addr()).await.unwrap();
    proxy.cut();
    let host = proxy.addr();
    let error = refusal(&format!("etcd://{host}")).await;
    assert!(error.to_string().contains("no answer"), "{error}");
    refusal(&format!("etcd://{host},{host},{host},{host}")).await;
}

#[tokio::test]
async fn the_limits_can_be_chosen() {
    let etcd = etcd().await;
    let proxy = lock_lab::Proxy::start(etcd.addr()).await.unwrap();
    let url = format!("etcd://{}", proxy.addr());
    let timely = async |option: &str| {
        let url = format!("{url}?{option}");
        let error = bounded(option, Duration::from_secs(1), refusal(&url)).await;
        assert!(error.to_string().contains("within 200ms"), "{option}: {error}");
    };
    let ours = locks(&format!("{url}?request_timeout=200ms")).await;
    proxy.cut();
    timely("connect_timeout=200ms").await;
    timely("request_timeout=200ms").await;
    let error = ours.inspect("job").await.unwrap_err().to_string();
    assert!(error.contains("no answer within 200ms"), "{error}");
    for option in ["connect_timeout=99ms", "request_timeout=2m"] {
        let url = StoreUrl::parse(&format!("{url}?{option}")).unwrap();
        let error = lock_etcd::EtcdConfig::from_url(&url).unwrap_err().to_string();
        assert!(error.contains("100ms to 1m"), "{error}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_deployment_is_told_at_connect() {
    let etcd = etcd().await;
    let guarantees = locks(&etcd.url()).await.guarantees().clone();
    let survives = guarantees.survives;
    assert!(survives.restart && !survives.failover, "one member: {survives:?}");
    let cautions = guarantees.cautions;
    let version = format!("etcd {}:", etcd.version().await.unwrap());
    let has = |words: &str| cautions.iter().any(|caution| caution.contains(words));
    assert!(has("a single member"), "{cautions:?}");
    assert!(has(&version) && has("wall clock") && has("or newer"), "{cautions:?}");
}

#[tokio::test]
async fn connecting_skips_a_dead_first_member() {
    let etcd = etcd().await;
    let locks = locks(&format!("etcd://127.0.0.1:1,{}", etcd.addr())).await;
    locks.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_learner_is_left_for_a_member_that_votes() {
    let etcd = etcd().await;
    let learner = etcd.start_learner().await.unwrap();
    let error = refusal(&format!("etcd://{}", learner.addr())).await;
    assert!(error.to_string().contains("learner"), "{error}");
    assert!(matches!(error, Error::Unavailable { effect: Effect::None, .. }), "{error:?}");
    // Each client has an order of its own.
    for _ in 0..6 {
        let locks = locks(&format!("etcd://{},{}", learner.addr(), etcd.addr())).await;
        locks.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_default_ttl_that_etcd_would_raise_is_refused() {
    let etcd = etcd().await;
    let error = refusal(&format!("{}?ttl=1s", etcd.url())).await;
    assert!(error.to_string().contains("2s to"), "{error}");
    assert!(etcd.leases().await.unwrap().is_empty());
}

#[tokio::test]
async fn logins() {
    let etcd = etcd().await;
    let host = etcd.addr();
    let error = refusal(&format!("etcd://me:s3cret@{host}")).await;
    assert!(matches!(error, Error::Denied { .. }), "authentication is off: {error}");
    with_users(&etcd).await.unwrap();
    for login in ["me:wrong@", "nobody:s3cret@", ""] {
        let error = refusal(&format!("etcd://{login}{host}")).await;
        assert!(matches!(error, Error::Denied { .. }), "{login}: {error}");
        assert!(!error.to_string().contains("s3cret"));
    }
    let root = locks(&format!("etcd://root:p%C3%A4ssword@{host}")).await;
    root.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    let locks = locks(&format!("etcd://me:s3cret@{host}?prefix=locks/")).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    guard.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
    let election = locks.election("job").unwrap();
    let mut leading = election.campaign("x").await.unwrap();
    leading.proclaim("y").await.unwrap();
    let mut observer = election.observe().await.unwrap();
    assert_eq!(soon(observer.next()).await.unwrap().unwrap().unwrap().value, b"y");
    let elsewhere = support::locks(&format!("etcd://me:s3cret@{host}?prefix=other/")).await;
    let error = elsewhere.lock("job").unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let error = elsewhere.election("job").unwrap().observe().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    // The observer may not read any more: it gets one error.
    let mut admin = admin(&etcd).await;
    admin.user_revoke_role("me", "locker").await.unwrap();
    let error = soon(observer.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(soon(observer.next()).await.is_none());
}

#[tokio::test]
async fn connecting_asks_everything_in_one_round() {
    let etcd = etcd().await;
    let proxy = lock_lab::Proxy::start(etcd.addr()).await.unwrap();
    let delay = Duration::from_secs(1);
    proxy.delay(delay);
    let url = format!("{}?connect_timeout=30s&request_timeout=30s", etcd.url_via(&proxy));
    // One round trip, and at most another one for the handshake of HTTP/2.
    let _locks = bounded("a connect", delay * 5, locks(&url)).await;
}

#[tokio::test]
async fn rights_that_are_enough_for_the_locks_of_one_name() {
    for (prefixes, enough) in [(["locks/job/", "locks/#"], true), (["locks/job/", "other/"], false)]
    {
        let etcd = etcd().await;
        with_rights(&etcd, &prefixes).await;
        let proxy = lock_lab::Proxy::start(etcd.addr()).await.unwrap();
        let url = format!("etcd://me:s3cret@{}?prefix=locks/", proxy.addr());
        let locks = locks(&url).await;
        let job = locks.lock("job").unwrap();
        if !enough {
            let error = job.acquire().await.unwrap_err();
            assert!(matches!(error, Error::Denied { op: "acquire", .. }), "{error}");
            continue;
        }
        job.acquire().await.unwrap().release().await.unwrap();
        // Also to resolve an acquire without an answer.
        proxy.half_open();
        let before = proxy.stats().chunks_up;
        let acquiring = tokio::spawn(job.acquire());
        until("etcd was asked", || async { proxy.stats().chunks_up > before }).await;
        proxy.reset();
        proxy.heal();
        soon(acquiring).await.unwrap().unwrap().release().await.unwrap();
    }
}

/// The commands of `docs/stores/etcd.md`, word for word, and no other rights.
#[tokio::test]
async fn the_documented_role_is_enough() {
    let page = include_str!("../../docs/stores/etcd.md");
    let (_, commands) = page.split_once("```bash\netcdctl role add ").expect("the commands");
    let (commands, _) = commands.split_once("```").expect("their end");
    let etcd = etcd().await;
    run(&etcd, &format!("etcdctl role add {commands}")).await;
    let locks = locks(&format!("etcd://app:SECRET@{}?prefix=locks/", etcd.addr())).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    guard.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
    let elsewhere = support::locks(&format!("etcd://app:SECRET@{}", etcd.addr())).await;
    let error = elsewhere.lock("job").unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

/// Runs commands of etcd's own client, which learns from its environment where etcd is.
async fn run(etcd: &lock_lab::Etcd, commands: &str) {
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-ec", commands]).env("ETCDCTL_API", "3");
    let done = soon(shell.env("ETCDCTL_ENDPOINTS", etcd.addr().to_string()).output()).await;
    let done = done.unwrap();
    assert!(done.status.success(), "{commands}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The options of `docs/stores/etcd.md` for each member, and its commands for one that was full.
#[tokio::test]
async fn the_documented_options_and_repairs_are_etcds_own() {
    let page = include_str!("../../docs/stores/etcd.md");
    let options = page.lines().find_map(|line| line.strip_prefix("$ etcd ")).expect("the options");
    let builder = options.split(' ').fold(lock_lab::Etcd::builder(), lock_lab::Builder::arg);
    let etcd = builder.in_memory().start().await.unwrap();
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    for command in ["etcdctl defrag", "etcdctl alarm disarm"] {
        assert!(page.contains(&format!("`{command}`")), "{command}");
        run(&etcd, command).await;
    }
    guard.release().await.unwrap();
}
