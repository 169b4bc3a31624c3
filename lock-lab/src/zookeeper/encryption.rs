//! TLS of a private ZooKeeper.

use std::{fs, io, net::SocketAddr, path::Path};

use crate::tls::Tls;

/// The certificate and its key in one file, as ZooKeeper wants them.
const STORE: &str = "tls-store.pem";
/// The authority of the clients' certificates.
const CLIENTS: &str = "tls-clients.pem";

/// The certificate of a server, and whose clients it takes.
#[derive(Clone, Debug)]
pub(super) struct Encryption {
    pub(super) tls: Tls,
    /// The authority of the clients' certificates, if they must have one.
    pub(super) clients: Option<String>,
}

impl Encryption {
    /// The lines of the configuration. Only Netty's connections know TLS. The port for clients
    /// takes both, so that the lab itself needs no TLS.
    pub(super) fn config(&self, home: &Path, secure: SocketAddr) -> String {
        let (host, port, home) = (secure.ip(), secure.port(), home.display());
        let auth = if self.clients.is_some() { "need" } else { "none" };
        let mut config = format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             client.portUnification=true\nsecureClientPort={port}\n\
             secureClientPortAddress={host}\nssl.keyStore.location={home}/{STORE}\n\
             ssl.keyStore.type=PEM\nssl.clientAuth={auth}\n",
        );
        if self.clients.is_some() {
            config +=
                &format!("ssl.trustStore.location={home}/{CLIENTS}\nssl.trustStore.type=PEM\n");
        }
        config
    }

    /// Writes the files to the server's folder, which only its owner can read.
    pub(super) fn write(&self, home: &Path) -> io::Result<()> {
        let (certificate, key) = (&self.tls.certificate, &self.tls.key);
        fs::write(home.join(STORE), format!("{certificate}\n{key}"))?;
        self.clients.as_ref().map_or(Ok(()), |clients| fs::write(home.join(CLIENTS), clients))
    }
}
