//! Private servers for `--lab`.

use lock_lab::LabError;

/// The features without which there is no lab.
pub const MISSING: &[&str] = &[
    #[cfg(not(feature = "etcd"))]
    "etcd",
    #[cfg(not(feature = "redis"))]
    "redis",
    #[cfg(not(feature = "zookeeper"))]
    "zookeeper",
    #[cfg(not(feature = "postgres"))]
    "postgres",
    #[cfg(not(feature = "mysql"))]
    "mysql",
];

/// One server of each store; they end with it.
#[derive(Default)]
pub struct Lab {
    servers: Vec<Box<dyn std::ops::Deref<Target = lock_lab::Server> + Send + Sync>>,
    urls: Vec<String>,
}

impl Lab {
    pub async fn start() -> Result<Self, LabError> {
        let mut lab = Self::default();
        lab.add(lock_lab::Etcd::start().await?);
        lab.add(lock_lab::Redis::start().await?);
        lab.add(lock_lab::ZooKeeper::start().await?);
        lab.add(lock_lab::Postgres::start().await?);
        lab.add(lock_lab::MariaDb::start().await?);
        Ok(lab)
    }

    fn add(
        &mut self,
        server: impl std::ops::Deref<Target = lock_lab::Server> + Send + Sync + 'static,
    ) {
        self.urls.push(server.url());
        self.servers.push(Box::new(server));
    }

    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.urls.iter().map(String::as_str)
    }
}
