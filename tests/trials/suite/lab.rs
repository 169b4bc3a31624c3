//! Harnesses on private servers. Each client has its own proxy as its network.
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
    LockName,
    properties::{Client, Failure, Harness},
};
use lock_lab::{Lent, PgBouncer, Proxy, Server};

use super::remote::Remote;
use crate::support::servers;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::support::servers::Secured;

type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Time for which a machine may be too busy to open a new connection.
const BUSY: Duration = Duration::from_secs(20);

/// A private server, with the functions of its store's own tools.
struct Lab<S: 'static> {
    /// What is before the server. It is gone when the next check gets the server.
    pooler: Option<PgBouncer>,
    server: Lent<S>,
    /// The clients' login in place of the server's own.
    login: Option<&'static str>,
    /// Text to append to the URL.
    options: String,
    ttl: Duration,
    delete: for<'a> fn(&'a S, &'a LockName) -> Reply<'a, ()>,
    leftovers: for<'a> fn(&'a S) -> Reply<'a, Vec<String>>,
}

#[async_trait]
impl<S: Deref<Target = Server> + Send + Sync> Harness for Lab<S> {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let first: &Server = self.pooler.as_deref().unwrap_or(&**self.server);
        let proxy = Proxy::start(first.addr()).await?;
        let mut url = first.url_via(&proxy) + &self.options;
        if let (Some(login), Some((start, end))) = (self.login, url.split_once('@')) {
            let (scheme, _) = start.split_once("://").ok_or("a URL without a scheme")?;
            url = format!("{scheme}://{login}@{end}");
        }
        let locks = distlock::connect(url).retry(BUSY).await?;
        Ok(Box::new(Remote { locks, proxies: vec![proxy] }))
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

#[cfg(feature = "redis")]
pub async fn redis(mode: &'static str) -> Result<Box<dyn Harness>, Failure> {
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

    Ok(Box::new(Lab {
        server: servers::redis().await?,
        pooler: None,
        login: None,
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
    Ok(Box::new(Lab {
        server: servers::etcd().await?,
        pooler: None,
        login: None,
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
                // The key of a session ends with the session. A mark does not.
                let kept = |key: &String| key.starts_with('#') && !key.starts_with("#done");
                Ok(keys.filter(|key| !kept(key)).collect())
            })
        },
    }))
}

#[cfg(feature = "zookeeper")]
pub async fn zookeeper() -> Result<Box<dyn Harness>, Failure> {
    use distlock::zookeeper::client::Client as Raw;
    use lock_lab::ZooKeeper;

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

    Ok(Box::new(Lab {
        server: servers::zookeeper().await?,
        pooler: None,
        login: None,
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

/// Deletes a name's rows.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn delete_rows(name: &LockName, literal: impl Fn(&str) -> String) -> String {
    let hex: String = name.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    let name = literal(&hex);
    format!("DELETE FROM distlock_v1_entries WHERE name = {name};")
}

/// Names that are not dead, and marks. Dead names are ignored: the next client removes them.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn live_names(now: &str) -> String {
    format!(
        "SELECT name FROM distlock_v1_entries WHERE expires > {now} \
         UNION ALL SELECT name FROM distlock_v1_marks;"
    )
}

/// A login that may do what the page names, and no more.
#[cfg(any(feature = "postgres", feature = "mysql"))]
const LIMITED: &str = "limited:l1m1ted";

/// Makes the tables, and lets a login use them.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn rights(dialect: distlock::sql::Dialect, create: &str, to: &str) -> String {
    let schema = distlock::sql::schema(dialect);
    let grant = ["slots", "entries", "marks"].map(|table| {
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON distlock_v1_{table} TO {to};\n")
    });
    format!("{schema}\n{create};\n{}", grant.concat())
}

/// With TLS, the clients have the rights that the page names alone. Or they are behind a pooler in
/// this mode.
#[cfg(feature = "postgres")]
pub async fn postgres(
    tls: bool,
    pooler: Option<&'static str>,
) -> Result<Box<dyn Harness>, Failure> {
    let server = servers::postgres(tls).await?;
    if tls {
        let create = "CREATE ROLE limited LOGIN PASSWORD 'l1m1ted'";
        let rights = rights(distlock::sql::Dialect::Postgres, create, "limited");
        server.server.sql(&rights).await?;
    }
    let options = match pooler {
        Some(mode) => format!("?pooler={mode}"),
        None => server.options(),
    };
    let pooler = match pooler {
        Some(mode) => Some(pgbouncer(&server.url(), mode).await?),
        None => None,
    };
    Ok(Box::new(Lab {
        login: tls.then_some(LIMITED),
        options,
        server,
        pooler,
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

/// Has a session for each connection of a check, and tries a server that restarts again soon.
#[cfg(feature = "postgres")]
async fn pgbouncer(server: &str, mode: &str) -> Result<PgBouncer, Failure> {
    let builder = PgBouncer::before(server).line(format!("pool_mode = {mode}"));
    let many = "default_pool_size = 300\nmax_client_conn = 300";
    Ok(builder.line(many).line("server_login_retry = 0.2").start().await?)
}

/// With TLS, the clients have the rights that the page names alone.
#[cfg(feature = "mysql")]
pub async fn mariadb(tls: bool) -> Result<Box<dyn Harness>, Failure> {
    let server = servers::mariadb(tls).await?;
    if tls {
        let create = "CREATE USER limited@'%' IDENTIFIED BY 'l1m1ted'";
        let rights = rights(distlock::sql::Dialect::MySql, create, "limited@'%'");
        server.server.sql(&rights).await?;
    }
    Ok(Box::new(Lab {
        login: tls.then_some(LIMITED),
        options: server.options(),
        server,
        pooler: None,
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
