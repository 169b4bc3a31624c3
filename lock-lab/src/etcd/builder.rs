//! The options of a private etcd.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::{Etcd, gateway, metrics};
use crate::{
    Counters, LabError, Server, program,
    store::{Answer, Store},
};

const INSTALL: &str = "apt-get install etcd-server";

/// Options for [`Etcd`].
#[derive(Clone, Debug)]
pub struct EtcdBuilder {
    binary: PathBuf,
    in_memory: bool,
    args: Vec<OsString>,
}

impl Default for EtcdBuilder {
    fn default() -> Self {
        Self { binary: "etcd".into(), in_memory: false, args: Vec::new() }
    }
}

impl EtcdBuilder {
    /// Puts the data directory on `/dev/shm`, if there is one: for benchmarks. Default: off.
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Sets the program: a name to look for in `PATH`, or a path. Default: `etcd`.
    pub fn binary(mut self, binary: impl Into<PathBuf>) -> Self {
        self.binary = binary.into();
        self
    }

    /// Adds an argument after those of the lab. Default: none.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] if the program is not there, [`LabError::Start`] if it does not start.
    pub async fn start(self) -> Result<Etcd, LabError> {
        Ok(Etcd { server: Server::start(self).await? })
    }
}

impl Store for EtcdBuilder {
    fn scheme(&self) -> &'static str {
        "etcd"
    }

    /// One for clients, one for the other members, which etcd opens even without any.
    fn ports(&self) -> usize {
        2
    }

    fn in_memory(&self) -> bool {
        self.in_memory
    }

    fn command(&self, home: &Path, addrs: &[SocketAddr]) -> Result<Vec<OsString>, LabError> {
        let mut command = vec![program::find(&self.binary, INSTALL)?.into_os_string()];
        let [client, peer] = [0, 1].map(|i| format!("http://{}", addrs[i]));
        let cluster = format!("lab={peer}");
        let options = [
            ("--name", "lab"),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
        ];
        command.extend(options.iter().flat_map(|(name, value)| [name.into(), value.into()]));
        command.extend(["--data-dir".into(), home.join("data").into()]);
        command.extend(self.args.iter().cloned());
        Ok(command)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            // It is healthy when it has elected itself and can read: it answers 503 before.
            gateway::get(addr, "/health").await.map(drop)
        })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(metrics::counters(addr))
    }
}
