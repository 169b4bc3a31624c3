//! Harnesses on private servers. Each client has its own proxy as its network.
//!
//! Starting a server takes longer than most checks. So the checks use the same server one after the
//! other, emptied each time, until a check restarts it.
#![cfg(any(
    feature = "redis",
    feature = "etcd",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use std::{ops::Deref, pin::Pin, time::Duration};

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{Client, Failure, Harness},
};
use lock_lab::{LabError, Lent, Pool, Proxy, Server};

type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Time for which a machine may be too busy to open a new connection.
const BUSY: Duration = Duration::from_secs(20);

/// A private server, with the functions of its store's own tools.
struct Lab<S: 'static> {
    server: Lent<S>,
    /// Text to append to the URL.
    options: String,
    ttl: Duration,
    delete: for<'a> fn(&'a S, &'a LockName) -> Reply<'a, ()>,
    leftovers: for<'a> fn(&'a S) -> Reply<'a, Vec<String>>,
}

#[async_trait]
impl<S: Deref<Target = Server> + Send + Sync> Harness for Lab<S> {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let proxy = Proxy::start(self.server.addr()).await?;
        let url = format!("{}{}", self.server.url_via(&proxy), self.options);
        Ok(Box::new(Remote { locks: distlock::connect(url).retry(BUSY).await?, proxy }))
    }

    fn ttl(&self) -> Duration {
        self.ttl
    }

    async fn restart(&self) -> Result<(), Failure> {
        self.server.spoil();
        Ok(self.server.restart().await?)
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        (self.delete)(&self.server, name).await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        (self.leftovers)(&self.server).await
    }
}

/// A database that may demand TLS.
#[cfg(any(feature = "postgres", feature = "mysql"))]
struct Secured<S> {
    server: S,
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

    fn options(&self) -> String {
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

struct Remote {
    // First: the locks are dropped before their network.
    locks: Locks,
    proxy: Proxy,
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

#[cfg(feature = "redis")]
pub async fn redis(mode: &'static str) -> Result<Box<dyn Harness>, Failure> {
    use lock_lab::Redis;

    fn shown(keys: Vec<Vec<u8>>) -> Vec<String> {
        // The last token of a name stays for the next holder, and a client's record is its session.
        let kept = |key: &Vec<u8>| {
            key.ends_with(b"\xfffence") || key.starts_with(b"{distlock}\xffclient:")
        };
        keys.iter()
            .filter(|key| !kept(key))
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .collect()
    }

    static POOL: Pool<Redis> = Pool::new();
    let empty = async |redis: &Redis| Ok(redis.command(&[b"FLUSHALL"]).await.map(drop)?);
    Ok(Box::new(Lab {
        server: POOL.lend(empty, Redis::start).await?,
        options: if mode.is_empty() { String::new() } else { format!("?{mode}") },
        ttl: Duration::from_secs(3),
        delete: |redis, _| {
            Box::pin(async move {
                redis.command(&[b"FLUSHALL"]).await?;
                Ok(())
            })
        },
        leftovers: |redis| Box::pin(async move { Ok(shown(redis.keys().await?)) }),
    }))
}

#[cfg(feature = "etcd")]
pub async fn etcd() -> Result<Box<dyn Harness>, Failure> {
    use lock_lab::Etcd;

    static POOL: Pool<Etcd> = Pool::new();
    let empty = async |etcd: &Etcd| {
        for lease in etcd.leases().await? {
            // The lease may end by itself meanwhile.
            let _ = etcd.revoke(lease).await;
        }
        Ok(etcd.delete_prefix(b"").await.map(drop)?)
    };
    Ok(Box::new(Lab {
        server: POOL.lend(empty, Etcd::start).await?,
        options: String::new(),
        // Longer than a restart of the server on a busy machine.
        ttl: Duration::from_secs(5),
        delete: |etcd, name| {
            Box::pin(async move {
                etcd.delete_prefix(format!("{}/", name.escaped()).as_bytes()).await?;
                Ok(())
            })
        },
        leftovers: |etcd| {
            Box::pin(async move {
                let keys = etcd.keys().await?;
                let keys = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned());
                // The epoch key of a session is deleted with the session.
                Ok(keys.filter(|key| !key.starts_with('#')).collect())
            })
        },
    }))
}

#[cfg(feature = "zookeeper")]
pub async fn zookeeper() -> Result<Box<dyn Harness>, Failure> {
    use distlock::zookeeper::client::Client as Raw;
    use lock_lab::ZooKeeper;

    /// Removes the nodes that clients have made.
    async fn remove_below(raw: &Raw, path: &str) -> Result<(), Failure> {
        for child in raw.list_children(path).await.unwrap_or_default() {
            let child = format!("{}/{child}", path.trim_end_matches('/'));
            if child != "/zookeeper" {
                Box::pin(remove_below(raw, &child)).await?;
                match raw.delete(&child, None).await {
                    // The server removes empty containers, too.
                    Ok(()) | Err(distlock::zookeeper::client::Error::NoNode) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Every znode below the locks' directory.
    async fn children(server: &ZooKeeper) -> Result<Vec<String>, Failure> {
        let raw = Raw::connect(&server.addr().to_string()).await?;
        let mut found = Vec::new();
        for lock in raw.list_children("/locks").await.unwrap_or_default() {
            for child in raw.list_children(&format!("/locks/{lock}")).await.unwrap_or_default() {
                found.push(format!("/locks/{lock}/{child}"));
            }
        }
        Ok(found)
    }

    static POOL: Pool<ZooKeeper> = Pool::new();
    let empty = async |server: &ZooKeeper| {
        let raw = Raw::connect(&server.addr().to_string()).await?;
        remove_below(&raw, "/").await
    };
    Ok(Box::new(Lab {
        server: POOL.lend(empty, ZooKeeper::start).await?,
        options: String::new(),
        // Longer than a restart of the server on a busy machine.
        ttl: Duration::from_secs(5),
        delete: |server, name| {
            Box::pin(async move {
                let raw = Raw::connect(&server.addr().to_string()).await?;
                let parent = format!("/locks/{}", name.escaped());
                for child in children(server)
                    .await?
                    .iter()
                    .filter(|path| path.starts_with(&format!("{parent}/")))
                {
                    raw.delete(child, None).await?;
                }
                // Deletes the container too, if the server has not removed it yet.
                let _ = raw.delete(&parent, None).await;
                Ok(())
            })
        },
        leftovers: |server| Box::pin(children(server)),
    }))
}

/// Deletes a name's rows, including its latest values.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn delete_rows(name: &LockName, literal: impl Fn(&str) -> String) -> String {
    let hex: String = name.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    let name = literal(&hex);
    ["entries", "values"]
        .map(|table| format!("DELETE FROM distlock_v1_{table} WHERE name = {name};"))
        .concat()
}

/// Names that are not dead. Dead ones are ignored: the next client removes them.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn live_names(now: &str) -> String {
    format!("SELECT name FROM distlock_v1_entries WHERE expires > {now};")
}

#[cfg(feature = "postgres")]
pub async fn postgres(tls: bool) -> Result<Box<dyn Harness>, Failure> {
    use lock_lab::{Builder, Postgres};

    static POOL: [Pool<Secured<Postgres>>; 2] = [Pool::new(), Pool::new()];
    let empty = async |Secured { server, .. }: &Secured<Postgres>| {
        // The last check's connections may still have requests running.
        let others = "pid <> pg_backend_pid() AND usename = current_user";
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others};
             DROP OWNED BY CURRENT_USER CASCADE;"
        );
        Ok(server.sql(&sql).await.map(drop)?)
    };
    let encrypted = |builder: Builder<Postgres>, issued: &lock_lab::Issued| {
        builder.tls(issued.certificate(), issued.key()).tls_only()
    };
    let start = || Secured::start(tls, Postgres::builder(), encrypted, Builder::start);
    let server = POOL[usize::from(tls)].lend(empty, start).await?;
    Ok(Box::new(Lab {
        options: server.options(),
        server,
        // Longer than a restart of the server on a busy machine.
        ttl: Duration::from_secs(5),
        delete: |Secured { server, .. }, name| {
            Box::pin(async move {
                server.sql(&delete_rows(name, |hex| format!("decode('{hex}', 'hex')"))).await?;
                Ok(())
            })
        },
        leftovers: |Secured { server, .. }| {
            Box::pin(async move {
                let now = "extract(epoch FROM clock_timestamp()) * 1000000";
                Ok(server.sql(&live_names(now)).await?.lines().map(str::to_owned).collect())
            })
        },
    }))
}

#[cfg(feature = "mysql")]
pub async fn mariadb(tls: bool) -> Result<Box<dyn Harness>, Failure> {
    use lock_lab::{Builder, MariaDb};

    static POOL: [Pool<Secured<MariaDb>>; 2] = [Pool::new(), Pool::new()];
    let empty = async |Secured { server, .. }: &Secured<MariaDb>| {
        let tables = server.sql("SHOW TABLES;").await?;
        let drop_all = tables.lines().map(|table| format!("DROP TABLE `{table}`;"));
        Ok(server.sql(&drop_all.collect::<String>()).await.map(drop)?)
    };
    let encrypted = |builder: Builder<MariaDb>, issued: &lock_lab::Issued| {
        builder.tls(issued.certificate(), issued.key()).tls_only()
    };
    let start = || Secured::start(tls, MariaDb::builder(), encrypted, Builder::start);
    let server = POOL[usize::from(tls)].lend(empty, start).await?;
    Ok(Box::new(Lab {
        options: server.options(),
        server,
        // Longer than a restart of the server on a busy machine.
        ttl: Duration::from_secs(5),
        delete: |Secured { server, .. }, name| {
            Box::pin(async move {
                server.sql(&delete_rows(name, |hex| format!("x'{hex}'"))).await?;
                Ok(())
            })
        },
        leftovers: |Secured { server, .. }| {
            Box::pin(async move {
                let now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
                Ok(server.sql(&live_names(now)).await?.lines().map(str::to_owned).collect())
            })
        },
    }))
}
