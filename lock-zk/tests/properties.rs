//! The properties of lock-core over TLS, with a login that may do what the page names, and no more.
//! Each check has a directory of its own.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    LockName,
    properties::{Client, Failure, Harness, NotHere},
};
use lock_lab::{Authority, Builder, Proxy, ZooKeeper};
use lock_zk::client::{Acl, Acls, AuthId, Client as Raw, CreateMode, Error as ZkError, Permission};
use tokio::{sync::OnceCell, task::JoinSet};

use crate::checks::{Checks, Remote, leftovers, remove};
use crate::support::*;

const AT_A_TIME: usize = 4;
/// Checks that restart the server begin with twice this.
const TTL: Duration = Duration::from_secs(5);
/// Of the server that restarts: sessions of up to 40 s outlast that on a busy machine.
const TICK: Duration = Duration::from_secs(2);
const LOGIN: &str = "me:p455";
/// The root belongs to it.
const OPERATOR: &str = "operator:s3cret";

/// A server, and the authority of its certificate.
struct Secure {
    authority: Authority,
    server: ZooKeeper,
}

impl Secure {
    async fn start(lab: Builder<ZooKeeper>) -> Self {
        let authority = Authority::new().unwrap();
        let issued = authority.server(&["127.0.0.1"]).unwrap();
        let (user, password) = OPERATOR.split_once(':').unwrap();
        let server = lab.tls(issued.certificate(), issued.key()).login(user, password);
        Self { server: started(server).await, authority }
    }
}

/// A directory for one check.
struct Room {
    secure: Arc<Secure>,
    directory: String,
    is_made: OnceCell<()>,
    may_restart: bool,
}

impl Room {
    /// A client with both logins.
    async fn raw(&self) -> Result<Raw, Failure> {
        let connector = patient().with_auth("digest", OPERATOR.as_bytes());
        let connector = connector.with_auth("digest", LOGIN.as_bytes());
        Ok(connector.connect(&self.secure.server.addr().to_string()).await?)
    }

    /// Makes the directory, with rights of both logins.
    async fn make(&self) -> Result<(), Failure> {
        let changes = Permission::CREATE | Permission::WRITE | Permission::DELETE;
        let acl = [Acl::new(Permission::READ | changes, AuthId::new("auth", ""))];
        let options = CreateMode::Persistent.with_acls(Acls::new(&acl));
        match self.raw().await?.create(&self.directory, b"", &options).await {
            Ok(_) | Err(ZkError::NodeExists) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Harness for Room {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        self.is_made.get_or_try_init(|| self.make()).await?;
        let proxy = Proxy::start(self.secure.server.secure_addr()).await?;
        let (ca, prefix) = (self.secure.authority.file().display(), &self.directory);
        let options = format!("tls=verify&ca={ca}&acl=creator&prefix={prefix}");
        let url = format!("zookeeper://{LOGIN}@{}?{options}", proxy.addr());
        Ok(Box::new(Remote { locks: open(&url).await, proxies: vec![proxy] }))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    async fn restart(&self) -> Result<(), Failure> {
        if !self.may_restart {
            return Err(NotHere("other checks run on the same server".to_owned()).into());
        }
        Ok(self.secure.server.restart().await?)
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        remove(&self.raw().await?, &format!("{}/{}", self.directory, name.escaped())).await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(leftovers(&self.raw().await?, &self.directory).await)
    }
}

/// Plays the checks on one server, so many at a time.
async fn play(may_restart: bool, at_a_time: usize) -> Checks {
    let lab = if may_restart { lab().tick(TICK) } else { lab() };
    let (secure, checks) = (Arc::new(Secure::start(lab).await), Checks::new(may_restart, false));
    let mut workers = JoinSet::new();
    for _ in 0..at_a_time {
        let secure = secure.clone();
        let room = move |directory| {
            let (secure, is_made) = (secure.clone(), OnceCell::new());
            Room { secure, directory, is_made, may_restart }
        };
        workers.spawn(checks.clone().play(room));
    }
    workers.join_all().await;
    checks
}

#[tokio::test(flavor = "multi_thread")]
async fn the_properties_are_kept_over_tls_with_a_login() {
    let (shared, restarted) = tokio::join!(play(false, AT_A_TIME), play(true, 1));
    Checks::all_kept([shared, restarted]);
}
