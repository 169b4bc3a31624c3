//! The executable properties on a server with TLS and logins, on one without RESP3, and on Sentinel.

mod lab;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{self, Check, Client, Failure, Harness, NotHere, Outcome},
};
use lock_lab::{Authority, Builder, Proxy, Redis, RedisSentinels};

const TTL: Duration = Duration::from_secs(3);

/// The deployment of a lane of checks.
enum Deployment {
    /// The authority, if clients encrypt.
    Single(Redis, Option<Arc<Authority>>),
    Sentinel(RedisSentinels),
}

struct Remote {
    // First: the locks are dropped before their network.
    locks: Locks,
    /// A client of sentinels has none: they name the primary itself.
    proxy: Option<Proxy>,
}

impl Deployment {
    /// The server that is the primary as long as none is killed for good.
    fn primary(&self) -> &Redis {
        match self {
            Self::Single(server, _) => server,
            Self::Sentinel(redis) => redis.node(0),
        }
    }

    async fn empty(&self) -> Result<(), Failure> {
        Ok(self.primary().command(&[b"FLUSHALL"]).await.map(drop)?)
    }
}

#[async_trait]
impl Harness for Deployment {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let (url, proxy) = match self {
            Self::Single(server, authority) => {
                let proxy = Proxy::start(server.addr()).await?;
                let tls = |it: &Arc<Authority>| format!("?tls=verify&ca={}", it.file().display());
                let options = authority.as_ref().map(tls).unwrap_or_default();
                (server.url_via(&proxy) + &options, Some(proxy))
            }
            Self::Sentinel(redis) => {
                let addrs: Vec<_> = redis.sentinel_addrs().iter().map(|a| a.to_string()).collect();
                (format!("redis+sentinel://{}/lab", addrs.join(",")), None)
            }
        };
        Ok(Box::new(Remote { locks: Locks::new(lab::try_driver(&url).await?), proxy }))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    async fn restart(&self) -> Result<(), Failure> {
        Ok(self.primary().restart().await?)
    }

    async fn delete(&self, _: &LockName) -> Result<(), Failure> {
        self.empty().await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(lab::left_behind(self.primary()).await)
    }
}

impl Remote {
    fn proxy(&self) -> Result<&Proxy, Failure> {
        let none = NotHere("sentinels name the primary itself, not a proxy".to_owned());
        Ok(self.proxy.as_ref().ok_or(none)?)
    }
}

#[async_trait]
impl Client for Remote {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.proxy().map(Proxy::cut)
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.proxy().map(Proxy::half_open)
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.proxy().map(Proxy::heal)
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.proxy().map(Proxy::refuse)
    }
}

type Checks = Arc<Mutex<VecDeque<(&'static str, &'static Check)>>>;

fn all() -> Checks {
    let named = |property: &'static properties::Property| {
        property.checks.iter().map(|check| (property.name, check))
    };
    Arc::new(Mutex::new(properties::all().iter().flat_map(named).collect()))
}

/// Runs checks on one deployment until there are no more. Returns how many were not skipped.
async fn lane(deployment: Deployment, checks: Checks) -> usize {
    let mut kept = 0;
    loop {
        let next = checks.lock().unwrap().pop_front();
        let Some((property, check)) = next else { return kept };
        deployment.empty().await.unwrap();
        match check.run(&deployment).await {
            Ok(Outcome::Skipped(_)) => {}
            Ok(_) => kept += 1,
            Err(failure) => panic!("{property}::{}: {failure}", check.name),
        }
    }
}

async fn all_hold(lanes: Vec<Deployment>) -> usize {
    let checks = all();
    let lanes: Vec<_> =
        lanes.into_iter().map(|it| tokio::spawn(lane(it, checks.clone()))).collect();
    let mut kept = 0;
    for lane in lanes {
        kept += lane.await.unwrap();
    }
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_properties_hold_over_tls_with_a_login() {
    let authority = Arc::new(Authority::new().unwrap());
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let mut lanes = Vec::new();
    for _ in 0..6 {
        let builder = Redis::builder().user("app", "secret");
        let builder = builder.tls(issued.certificate(), issued.key());
        let server = builder.start().await.unwrap();
        lanes.push(Deployment::Single(server, Some(authority.clone())));
    }
    let count = all().lock().unwrap().len();
    assert_eq!(all_hold(lanes).await, count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_properties_hold_without_resp3() {
    let mut lanes = Vec::new();
    for _ in 0..6 {
        let words = ["--rename-command", "HELLO", ""];
        let builder = words.into_iter().fold(Redis::builder(), Builder::arg);
        lanes.push(Deployment::Single(builder.start().await.unwrap(), None));
    }
    let count = all().lock().unwrap().len();
    assert_eq!(all_hold(lanes).await, count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_properties_hold_on_sentinel() {
    let mut lanes = Vec::new();
    for _ in 0..3 {
        // No failover: each check counts what is left on one server.
        let builder = RedisSentinels::builder().down_after(Duration::from_secs(30));
        lanes.push(Deployment::Sentinel(builder.start().await.unwrap()));
    }
    let kept = all_hold(lanes).await;
    // Some need a cut of the network.
    assert!(kept * 2 > all().lock().unwrap().len(), "{kept}");
}
