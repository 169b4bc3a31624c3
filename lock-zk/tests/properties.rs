//! The properties of lock-core over TLS, with a login to which all nodes belong.

mod support;

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{self, Check, Client, Failure, Harness, Outcome, Property},
};
use lock_lab::{Authority, Proxy, ZooKeeper};
use lock_zk::client::{Client as Raw, Error as ZkError};
use support::*;
use tokio::task::JoinSet;

/// How many servers the checks share. Each check has one for itself.
const SERVERS: usize = 4;
/// Its checks restart the server, which takes too long beside other starts.
const ALONE: [&str; 1] = ["reconnect"];
const LOGIN: &str = "me:p455";
/// Longer than a restart of the server on a busy machine.
const TTL: Duration = Duration::from_secs(5);

struct Secure {
    authority: Authority,
    server: ZooKeeper,
}

struct Remote {
    // First: the locks are dropped before their network.
    locks: Locks,
    proxy: Proxy,
}

impl Secure {
    async fn start() -> Self {
        let authority = Authority::new().unwrap();
        let issued = authority.server(&["127.0.0.1"]).unwrap();
        let (user, password) = LOGIN.split_once(':').unwrap();
        let server = lab().tls(issued.certificate(), issued.key()).login(user, password);
        Self { server: server.start().await.unwrap(), authority }
    }

    async fn raw(&self) -> Result<Raw, Failure> {
        let connector = Raw::connector().with_auth("digest", LOGIN.as_bytes());
        Ok(connector.connect(&self.server.addr().to_string()).await?)
    }

    /// Everything below the locks' directory, the lowest first.
    async fn nodes(&self, raw: &Raw, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        for child in raw.list_children(path).await.unwrap_or_default() {
            let child = format!("{path}/{child}");
            found.extend(Box::pin(self.nodes(raw, &child)).await);
            found.push(child);
        }
        found
    }

    async fn remove(&self, path: &str) -> Result<(), Failure> {
        let raw = self.raw().await?;
        let mut nodes = self.nodes(&raw, path).await;
        nodes.push(path.to_owned());
        for node in nodes {
            match raw.delete(&node, None).await {
                // The server removes empty containers, too.
                Ok(()) | Err(ZkError::NoNode) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Harness for Secure {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let proxy = Proxy::start(self.server.secure_addr()).await?;
        let ca = self.authority.file().display();
        let url = format!("zookeeper://{LOGIN}@{}?tls=verify&ca={ca}&acl=creator", proxy.addr());
        Ok(Box::new(Remote { locks: opened(&url).await, proxy }))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    async fn restart(&self) -> Result<(), Failure> {
        Ok(self.server.restart().await?)
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        self.remove(&format!("/locks/{}", name.escaped())).await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let mut nodes = self.nodes(&self.raw().await?, "/locks").await;
        nodes.retain(|node| node.matches('/').count() > 2);
        Ok(nodes)
    }
}

#[async_trait]
impl Client for Remote {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.proxy.cut();
        Ok(())
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.proxy.half_open();
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.proxy.heal();
        Ok(())
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.proxy.refuse();
        Ok(())
    }
}

type Checks = Mutex<VecDeque<(&'static str, &'static Check)>>;

/// Plays checks on one server until there are no more. Returns what failed, and how many were kept.
async fn play(checks: &'static Checks) -> (Vec<String>, usize) {
    let (server, mut failed, mut kept) = (Secure::start().await, Vec::new(), 0);
    loop {
        let next = checks.lock().unwrap().pop_front();
        let Some((property, check)) = next else { return (failed, kept) };
        match check.run(&server).await {
            Ok(outcome) => kept += usize::from(outcome == Outcome::Kept),
            Err(failure) => failed.push(format!("{property}::{}: {failure}", check.name)),
        }
        server.remove("/locks").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_properties_are_kept_over_tls_with_a_login() {
    static CHECKS: Checks = Mutex::new(VecDeque::new());
    let (mut failed, mut kept) = (Vec::new(), 0);
    for (alone, servers) in [(true, 1), (false, SERVERS)] {
        let is_next = |property: &&Property| ALONE.contains(&property.name) == alone;
        for property in properties::all().iter().filter(is_next) {
            let checks = property.checks.iter().map(|check| (property.name, check));
            CHECKS.lock().unwrap().extend(checks);
        }
        let mut servers: JoinSet<_> = (0..servers).map(|_| play(&CHECKS)).collect();
        while let Some(played) = servers.join_next().await {
            let (more, count) = played.unwrap();
            failed.extend(more);
            kept += count;
        }
    }
    println!("{kept} checks kept");
    assert!(failed.is_empty() && kept > 50, "{kept} kept; {}", failed.join("\n"));
}
