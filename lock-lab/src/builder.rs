//! Choosing the options of a server, and its start.

use std::{ffi::OsString, path::PathBuf};

use crate::{LabError, Network, Server, options::Common, store::Store, tls::Tls};

/// A kind of server that a [`Builder`] starts.
pub trait Kind: Sized {
    /// Its own options.
    type Options: Store + Clone + Default + 'static;

    /// Wraps a server that runs.
    fn new(server: Server, options: Self::Options) -> Self;
}

/// What each kind of server has, which is a [`Server`] in its field `server`.
macro_rules! kind {
    ($kind:ident) => {
        impl $kind {
            /// Starts one with default options and waits until it answers.
            pub async fn start() -> Result<Self, $crate::LabError> {
                Self::builder().start().await
            }

            /// Checks that this machine has all that it needs with default options, without
            /// starting it.
            pub fn installed() -> Result<(), $crate::LabError> {
                Self::builder().installed()
            }

            /// Returns the options to choose from.
            pub fn builder() -> $crate::Builder<Self> {
                $crate::Builder::default()
            }
        }

        impl ::std::ops::Deref for $kind {
            type Target = $crate::Server;

            fn deref(&self) -> &$crate::Server {
                &self.server
            }
        }
    };
}

pub(crate) use kind;

/// Options for a private server of the kind `K`.
#[derive(Debug)]
pub struct Builder<K: Kind> {
    pub(crate) common: Common,
    pub(crate) options: K::Options,
}

/// A derived impl would demand that the server itself can be cloned.
impl<K: Kind> Clone for Builder<K> {
    fn clone(&self) -> Self {
        Self { common: self.common.clone(), options: self.options.clone() }
    }
}

impl<K: Kind> Default for Builder<K> {
    fn default() -> Self {
        Self { common: Common::default(), options: K::Options::default() }
    }
}

impl<K: Kind> Builder<K> {
    /// Keeps the data in memory, on `/dev/shm` if there is one. Trades time to start for later
    /// speed if the server can: for benchmarks. Default: off.
    ///
    /// A Redis then writes no file at all, so a restart loses everything.
    pub fn in_memory(mut self) -> Self {
        self.common.in_memory = true;
        self
    }

    /// Sets the program: a name to look for in `PATH`, or a path; for ZooKeeper, the JVM. Default:
    /// the one of the Debian package.
    pub fn binary(mut self, binary: impl Into<PathBuf>) -> Self {
        self.common.binary = Some(binary.into());
        self
    }

    /// Adds an argument of the program after those of the lab; for ZooKeeper, one of the JVM.
    /// Default: none.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.common.args.push(arg.into());
        self
    }

    /// Speaks TLS, with a certificate of the server and its key as PEM (PKCS #8 for ZooKeeper).
    ///
    /// etcd and Redis demand it of their clients then. The others also take connections without it;
    /// [`ZooKeeper::secure_addr`](crate::ZooKeeper::secure_addr) takes those with it alone. The nodes
    /// of a cluster have the same certificate, and speak to each other without TLS. Default: without
    /// TLS (MariaDB from 11.4 makes a certificate of its own).
    pub fn tls(mut self, certificate: impl Into<String>, key: impl Into<String>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        self.common.tls = Some(Tls { certificate, key, clients: None, only: false });
        self
    }

    /// Demands of each client a certificate that this authority (PEM) has issued. Call it after
    /// [`tls`](Self::tls). Default: none is demanded.
    ///
    /// Databases demand it of some users: MariaDB of those that are made with `REQUIRE X509`,
    /// PostgreSQL of the user `certified`, if it is made.
    pub fn client_authority(mut self, certificate: impl Into<String>) -> Self {
        let certificate = certificate.into();
        self.common.tls.iter_mut().for_each(|tls| tls.clients = Some(certificate.clone()));
        self
    }

    /// Gives the server a place of its own in a network. Default: a port of 127.0.0.1.
    ///
    /// Only code on a [`Side`](crate::Side) of that network can reach it.
    pub fn on(mut self, network: &Network) -> Self {
        self.common.network = Some(network.clone());
        self
    }

    /// Checks that this machine has all that the server needs, without starting it.
    pub fn installed(&self) -> Result<(), LabError> {
        self.options.installed(&self.common)
    }

    /// Starts the server and waits until it answers.
    pub async fn start(self) -> Result<K, LabError> {
        let server = Server::start(&self.common, &self.options).await?;
        Ok(K::new(server, self.options))
    }
}
