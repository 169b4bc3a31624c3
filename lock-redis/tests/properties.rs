//! The executable properties on a server with TLS and logins.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{AS_MUTEX, Client, Failure, Harness, Outcome},
};
use lock_lab::{Authority, Builder, Proxy, Redis};

use crate::{
    lab::{
        self,
        checks::{self, Named},
    },
    remote::Remote,
};

const TTL: Duration = Duration::from_secs(3);

/// The server of a lane of checks.
struct Single {
    server: Redis,
    /// Who has issued its certificate, if clients encrypt. Then they have the rights that the page
    /// names, and no others.
    authority: Option<Arc<Authority>>,
}

/// `Harness` for one check after the other.
struct Shared(Arc<Single>);

impl Single {
    async fn empty(&self) -> Result<(), Failure> {
        Ok(self.server.command(&[b"FLUSHALL"]).await.map(drop)?)
    }
}

#[async_trait]
impl Harness for Shared {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let Single { server, authority } = &*self.0;
        let proxy = Proxy::start(server.addr()).await?;
        let url = match authority {
            Some(it) => {
                let tls = format!("&tls=verify&ca={}", it.file().display());
                lab::documented_url(proxy.addr()) + &tls
            }
            None => server.url_via(&proxy),
        };
        let locks = Locks::new(lab::try_driver(&url).await?);
        Ok(Box::new(Remote { locks, proxies: vec![proxy] }))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    async fn restart(&self) -> Result<(), Failure> {
        Ok(self.0.server.restart().await?)
    }

    async fn delete(&self, _: &LockName) -> Result<(), Failure> {
        self.0.empty().await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(lab::left_behind(&self.0.server).await)
    }
}

type Checks = Arc<Mutex<std::vec::IntoIter<Named>>>;

/// Runs checks on one server until there are no more. Returns those that were skipped.
async fn lane(single: Single, checks: Checks) -> Vec<String> {
    let (single, mut skipped) = (Arc::new(single), Vec::new());
    loop {
        let next = checks.lock().unwrap().next();
        let Some(check) = next else { return skipped };
        single.empty().await.unwrap();
        if let Outcome::Skipped(why) = check.run(Shared(single.clone())).await.unwrap() {
            skipped.push(format!("{}: {why}", check.name));
        }
    }
}

/// Returns the checks that were skipped.
async fn skipped(checks: Vec<Named>, lanes: Vec<Single>) -> Vec<String> {
    let checks = Arc::new(Mutex::new(checks.into_iter()));
    let lanes: Vec<_> =
        lanes.into_iter().map(|single| tokio::spawn(lane(single, checks.clone()))).collect();
    let mut skipped = Vec::new();
    for lane in lanes {
        skipped.extend(lane.await.unwrap());
    }
    skipped
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_properties_hold_over_tls_with_a_login() {
    let authority = Arc::new(Authority::new().unwrap());
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let mut lanes = Vec::new();
    for _ in 0..16 {
        let builder = Redis::builder().user("app", "secret");
        let builder = builder.tls(issued.certificate(), issued.key());
        // It must outlive a restart, and may see that the locks do.
        let user = lab::documented_user() + " +config|get";
        let builder = user.split(' ').fold(builder.arg("--user"), Builder::arg);
        let server = builder.start().await.unwrap();
        lanes.push(Single { server, authority: Some(authority.clone()) });
    }
    assert_eq!(skipped(checks::all(AS_MUTEX), lanes).await, Vec::<String>::new());
}
