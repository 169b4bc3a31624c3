//! TLS of a private ZooKeeper.

use std::{fs, net::SocketAddr, path::Path};

use crate::{LabError, tls::Tls};

/// The certificate and its key in one file, as ZooKeeper wants them.
const STORE: &str = "tls-store.pem";

/// Writes the files, and returns the lines of the configuration. Only Netty's connections know TLS.
/// The port for clients takes both, so that the lab itself needs no TLS.
pub(super) fn config(tls: &Tls, home: &Path, secure: SocketAddr) -> Result<String, LabError> {
    tls.write(home)?;
    fs::write(home.join(STORE), format!("{}\n{}", tls.certificate, tls.key))
        .map_err(LabError::io(format!("writing {STORE}")))?;
    let (host, port, home) = (secure.ip(), secure.port(), home.display());
    let auth = if tls.clients.is_some() { "need" } else { "none" };
    let mut config = format!(
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         client.portUnification=true\nsecureClientPort={port}\n\
         secureClientPortAddress={host}\nssl.keyStore.location={home}/{STORE}\n\
         ssl.keyStore.type=PEM\nssl.clientAuth={auth}\n",
    );
    if tls.clients.is_some() {
        let clients = Tls::CLIENTS;
        config += &format!("ssl.trustStore.location={home}/{clients}\nssl.trustStore.type=PEM\n");
    }
    Ok(config)
}
