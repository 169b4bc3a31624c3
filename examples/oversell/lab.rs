//! Private servers for `--lab`.

use distlock::Store;
use lock_lab::{AnyServer, LabError, SERVERS};

/// One server of each store. Dropping this stops them.
#[derive(Default)]
pub struct Lab(Vec<AnyServer>);

impl Lab {
    /// Whether the drivers of all these stores are compiled in.
    pub fn is_complete() -> bool {
        SERVERS.iter().all(|scheme| Store::of_scheme(scheme).is_some_and(|store| store.compiled_in))
    }

    pub async fn start() -> Result<Self, LabError> {
        let mut servers = Vec::new();
        for scheme in SERVERS {
            servers.push(AnyServer::start(scheme).await?);
        }
        Ok(Self(servers))
    }

    pub fn urls(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|server| server.url())
    }
}
