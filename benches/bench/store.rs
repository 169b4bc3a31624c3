//! The stores, each with data of its own in memory, so that no disk decides.

use std::ops::Deref;

use lock_lab::{Counters, LabError, Server};

/// The stores that are compiled in, or those named on the command line.
pub fn all() -> Vec<&'static str> {
    let all: &[&str] = &[
        #[cfg(feature = "etcd")]
        "etcd",
        #[cfg(feature = "redis")]
        "redis",
        #[cfg(feature = "zookeeper")]
        "zookeeper",
        #[cfg(feature = "sqlite")]
        "sqlite",
        #[cfg(feature = "postgres")]
        "postgres",
        #[cfg(feature = "mysql")]
        "mariadb",
    ];
    let wanted: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |store: &&str| wanted.is_empty() || wanted.iter().any(|w| w == store);
    let chosen: Vec<_> = all.iter().copied().filter(is_wanted).collect();
    if chosen.is_empty() {
        println!("none of {wanted:?} is compiled in; there are {all:?}");
    }
    chosen
}

/// A store that runs.
pub enum Running {
    Server(Box<dyn Deref<Target = Server> + Send + Sync>),
    /// SQLite's directory.
    Directory(tempfile::TempDir),
}

impl Running {
    pub async fn start(store: &str) -> Self {
        if store == "sqlite" {
            let memory = std::path::Path::new("/dev/shm");
            let place = if memory.is_dir() { memory } else { &std::env::temp_dir() };
            return Self::Directory(tempfile::tempdir_in(place).expect("a directory"));
        }
        Self::Server(serve(store).await.unwrap_or_else(|error| panic!("{error}")))
    }

    pub fn url(&self) -> String {
        match self {
            Self::Server(server) => server.url(),
            Self::Directory(directory) => {
                format!("sqlite:{}", directory.path().join("locks.db").display())
            }
        }
    }

    /// What the server has counted; SQLite counts nothing.
    pub async fn counters(&self) -> Counters {
        match self {
            Self::Server(server) => server.counters().await.expect("counters"),
            Self::Directory(_) => Counters::default(),
        }
    }
}

async fn serve(store: &str) -> Result<Box<dyn Deref<Target = Server> + Send + Sync>, LabError> {
    use lock_lab::{Etcd, MariaDb, Postgres, Redis, ZooKeeper};
    Ok(match store {
        "etcd" => Box::new(Etcd::builder().in_memory().start().await?),
        "redis" => Box::new(Redis::builder().in_memory().start().await?),
        "zookeeper" => Box::new(ZooKeeper::builder().in_memory().start().await?),
        "postgres" => Box::new(Postgres::builder().in_memory().start().await?),
        _ => Box::new(MariaDb::builder().in_memory().start().await?),
    })
}

/// What clients asked for each time, on average: requests, or statements in a database. `None` where
/// nobody counts.
pub fn per_time(store: &str, since: &Counters, times: u64) -> Option<f64> {
    let count: u64 = since
        .iter()
        .filter(|(what, _)| match store {
            // What scripts call is counted by the server, too; only the scripts come from clients.
            "redis" => ["cmd.evalsha", "cmd.eval", "cmd.ping", "cmd.subscribe"].contains(what),
            "etcd" => what.starts_with("msg.") && !what.contains("KeepAlive"),
            "zookeeper" => *what == "packets_received",
            _ => what.starts_with("cmd."),
        })
        .map(|(_, count)| count)
        .sum();
    (store != "sqlite").then(|| count as f64 / times.max(1) as f64)
}
