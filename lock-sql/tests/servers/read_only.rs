//! Servers that take no writes: a primary that stopped being one, and a standby.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::Error;
use lock_lab::Postgres;
use lock_sql::{Dialect, schema};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::servers::{Database, connect, eventually, locks, on_both, rights::user};

on_both!(a_server_that_became_read_only_is_left, a_read_only_server_is_refused_with_the_reason);

const TTL: Duration = Duration::from_secs(30);

/// An address that can be led to another server. Existing connections stay where they are.
pub struct Address {
    addr: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
}

impl Address {
    pub async fn of(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, target) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(target)));
        let leads_to = target.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let target = *leads_to.lock().unwrap();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(target).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { addr, target }
    }

    /// The URL of the server at `addr`, by way of this address.
    pub fn url(&self, url: &str, addr: SocketAddr) -> String {
        url.replace(&addr.to_string(), &self.addr.to_string())
    }

    pub fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = target;
    }
}

impl Database {
    /// Makes the server refuse or take writes.
    pub async fn set_read_only(&self, on: bool) {
        self.spoil();
        match self {
            Self::Postgres(server) => {
                let set = format!("ALTER SYSTEM SET default_transaction_read_only = {on}");
                server.sql_as_admin(&set).await.unwrap();
                server.sql_as_admin("SELECT pg_reload_conf()").await.unwrap();
                reloaded(server, if on { "on" } else { "off" }).await;
            }
            Self::MariaDb(server) => {
                let set = format!("SET GLOBAL read_only = {}", u8::from(on));
                server.sql_as_admin(&set).await.unwrap();
            }
        }
    }

    /// A server with the tables, for a user with the same password on all such servers.
    pub async fn start_for_everyone(dialect: Dialect) -> Self {
        Self::start(dialect).await.for_everyone(dialect).await
    }

    /// Makes the tables, and the user.
    pub async fn for_everyone(self, dialect: Dialect) -> Self {
        let (create, grant) = user(dialect);
        self.sql(create).await;
        self.sql(&schema(dialect)).await;
        self.sql(&grant).await;
        self
    }
}

/// `pg_reload_conf` only sends a signal: its reply comes before the effect. The postmaster reads
/// the file and signals its processes in one go, so a new connection that was born with the value
/// comes after all of them.
async fn reloaded(server: &Postgres, value: &str) {
    eventually("the file is read", async || {
        let shown = server.sql_as_admin("SHOW default_transaction_read_only").await.unwrap();
        shown.trim() == value
    })
    .await;
}

/// By then the address leads to the new primary, but connections stay with the old one.
async fn a_server_that_became_read_only_is_left(dialect: Dialect) {
    let (old, new) =
        (Database::start_for_everyone(dialect).await, Database::start_for_everyone(dialect).await);
    let address = Address::of(old.addr()).await;
    let locks = locks(&address.url(&old.url_as("plain:plain"), old.addr())).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    address.lead_to(new.addr());
    old.set_read_only(true).await;
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    assert_eq!(new.entries().await, 1);
    guard.release().await.unwrap();
    assert_eq!(new.entries().await, 0);
}

async fn a_read_only_server_is_refused_with_the_reason(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    let url = server.url_as("plain:plain");
    let before = locks(&url).await;
    server.set_read_only(true).await;
    let refused = connect(&url).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("the server is read-only"), "{refused}");
    // The refusal passes: clients that were there before go on when it is over.
    let lock = before.lock("a").unwrap().ttl(TTL);
    let attempt = tokio::spawn(lock.acquire());
    server.set_read_only(false).await;
    attempt.await.unwrap().unwrap().release().await.unwrap();
    locks(&url).await;
}

/// A copy that follows no primary is a standby, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_refused_until_it_is_promoted() {
    let server = Database::start(Dialect::Postgres).await;
    let Database::Postgres(postgres) = &server else { unreachable!() };
    locks(&server.url()).await.close().await.unwrap();
    let home = std::fs::read_link(format!("/proc/{}/cwd", server.pid())).unwrap();
    server.kill();
    std::fs::write(standby_signal(home), "").unwrap();
    server.restart().await.unwrap();
    let refused = connect(&server.url()).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("the server is a standby"), "{refused}");
    postgres.sql_as_admin("SELECT pg_promote()").await.unwrap();
    eventually("it is the primary", async || connect(&server.url()).await.is_ok()).await;
}

/// A server's directory is its data, or contains it.
fn standby_signal(home: PathBuf) -> PathBuf {
    let data = home.join("data");
    if data.is_dir() { data } else { home }.join("standby.signal")
}
