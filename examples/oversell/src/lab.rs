//! Private servers for `--lab`.

use lock_lab::{AnyServer, LabError, SERVERS};

/// Starts one server of each store. Dropping them stops them.
pub async fn start() -> Result<Vec<AnyServer>, LabError> {
    let mut servers = Vec::new();
    for scheme in SERVERS {
        servers.push(AnyServer::start(scheme).await?);
    }
    Ok(servers)
}
