//! Choosing the options of a server, and its start.

use std::{ffi::OsString, path::PathBuf};

use crate::{LabError, Network, Server, options::Common, store::Store};

/// A kind of server that a [`Builder`] starts.
pub trait Kind: Sized {
    /// Its own options.
    type Options: Store + Clone + Default + 'static;

    /// Wraps a server that runs.
    fn new(server: Server, options: Self::Options) -> Self;
}

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
