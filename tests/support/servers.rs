//! Servers that tests use one after the other: starting one takes longer than most tests. A test
//! has its server for itself, and the next one gets it empty.

use std::{ops::Deref, time::Duration};

use lock_lab::{LabError, Lent, Pool, Server};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Waits until a server has no client: late requests of the last test would be counted in the next
/// one.
async fn is_left<F: Future<Output = Result<bool, LabError>>>(
    is_in_use: impl Fn() -> F,
) -> Result<(), Failure> {
    let wait = async {
        while is_in_use().await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| Err("a client stays".into()))
}

#[cfg(feature = "redis")]
pub async fn redis() -> Result<Lent<lock_lab::Redis>, Failure> {
    use lock_lab::Redis;

    static POOL: Pool<Redis> = Pool::new();
    let empty = async |redis: &Redis| {
        // One line is of the connection that asks.
        is_left(|| async move {
            let clients = redis.command(&[b"CLIENT", b"LIST"]).await?;
            Ok(clients.lines().count() > 1)
        })
        .await?;
        Ok(redis.command(&[b"FLUSHALL"]).await.map(drop)?)
    };
    POOL.lend(empty, Redis::start).await
}

#[cfg(feature = "etcd")]
pub async fn etcd() -> Result<Lent<lock_lab::Etcd>, Failure> {
    use lock_lab::Etcd;

    static POOL: Pool<Etcd> = Pool::new();
    let empty = async |etcd: &Etcd| {
        for lease in etcd.leases().await? {
            // The lease may end by itself meanwhile.
            let _ = etcd.revoke(lease).await;
        }
        Ok(etcd.delete_prefix(b"").await.map(drop)?)
    };
    POOL.lend(empty, Etcd::start).await
}

#[cfg(feature = "zookeeper")]
pub async fn zookeeper() -> Result<Lent<lock_lab::ZooKeeper>, Failure> {
    use lock_lab::ZooKeeper;

    static POOL: Pool<ZooKeeper> = Pool::new();
    POOL.lend(empty_zookeeper, ZooKeeper::start).await
}

/// A server with long ticks, so that sessions may last for 40 s. Its sweep, which deletes empty
/// directories, sleeps: on a slow machine each round of a test that counts requests would meet one.
#[cfg(feature = "zookeeper")]
pub async fn patient_zookeeper() -> Result<Lent<lock_lab::ZooKeeper>, Failure> {
    use lock_lab::ZooKeeper;

    static POOL: Pool<ZooKeeper> = Pool::new();
    let start = async || {
        let builder = ZooKeeper::builder().tick(Duration::from_secs(2));
        builder.arg("-Dznode.container.checkIntervalMs=3600000").start().await
    };
    POOL.lend(empty_zookeeper, start).await
}

/// Removes the nodes that clients have made.
#[cfg(feature = "zookeeper")]
async fn empty_zookeeper(server: &lock_lab::ZooKeeper) -> Result<(), Failure> {
    use distlock::zookeeper::client::{Client, Error};

    async fn remove_below(client: &Client, path: &str) -> Result<(), Failure> {
        for child in client.list_children(path).await.unwrap_or_default() {
            let child = format!("{}/{child}", path.trim_end_matches('/'));
            if child != "/zookeeper" {
                Box::pin(remove_below(client, &child)).await?;
                match client.delete(&child, None).await {
                    // The server removes empty containers, too.
                    Ok(()) | Err(Error::NoNode) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    // A connection without a session is of the one who asks.
    is_left(|| async move { Ok(server.four_letter("cons").await?.contains("sid=0x")) }).await?;
    // Its own limit for a connect is that of the session, 6 s.
    let patient = Client::connector().with_session_timeout(Duration::from_secs(60));
    remove_below(&patient.connect(&server.addr().to_string()).await?, "/").await
}

/// A database that may demand TLS.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub struct Secured<S> {
    pub server: S,
    /// Who has issued its certificate.
    authority: Option<lock_lab::Authority>,
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
impl<S> Secured<S> {
    async fn start<B, F: Future<Output = Result<S, LabError>>>(
        tls: bool,
        builder: B,
        encrypted: impl Fn(B, &lock_lab::Issued) -> B,
        start: impl Fn(B) -> F,
    ) -> Result<Self, LabError> {
        if !tls {
            return Ok(Self { server: start(builder).await?, authority: None });
        }
        let authority = lock_lab::Authority::new()?;
        let builder = encrypted(builder, &authority.server(&["127.0.0.1"])?);
        Ok(Self { server: start(builder).await?, authority: Some(authority) })
    }

    /// What its URL needs.
    pub fn options(&self) -> String {
        let authority = self.authority.as_ref();
        authority.map(|it| format!("?tls=verify&ca={}", it.file().display())).unwrap_or_default()
    }
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
impl<S: Deref<Target = Server>> Deref for Secured<S> {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

#[cfg(feature = "postgres")]
pub async fn postgres(tls: bool) -> Result<Lent<Secured<lock_lab::Postgres>>, Failure> {
    use lock_lab::{Builder, Postgres};

    static POOL: [Pool<Secured<Postgres>>; 2] = [Pool::new(), Pool::new()];
    let empty = async |secured: &Secured<Postgres>| Ok(secured.server.empty().await?);
    let encrypted = |builder: Builder<Postgres>, issued: &lock_lab::Issued| {
        builder.tls(issued.certificate(), issued.key()).tls_only()
    };
    let start = || Secured::start(tls, Postgres::builder(), encrypted, Builder::start);
    POOL[usize::from(tls)].lend(empty, start).await
}

#[cfg(feature = "mysql")]
pub async fn mariadb(tls: bool) -> Result<Lent<Secured<lock_lab::MariaDb>>, Failure> {
    use lock_lab::{Builder, MariaDb};

    static POOL: [Pool<Secured<MariaDb>>; 2] = [Pool::new(), Pool::new()];
    let empty = async |secured: &Secured<MariaDb>| Ok(secured.server.empty().await?);
    let encrypted = |builder: Builder<MariaDb>, issued: &lock_lab::Issued| {
        builder.tls(issued.certificate(), issued.key()).tls_only()
    };
    let start = || Secured::start(tls, MariaDb::builder(), encrypted, Builder::start);
    POOL[usize::from(tls)].lend(empty, start).await
}
