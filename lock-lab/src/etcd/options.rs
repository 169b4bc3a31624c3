//! The options of a private etcd.

use std::{ffi::OsString, net::SocketAddr, path::Path};

use super::{gateway, metrics};
use crate::{
    Counters, LabError,
    builder::Common,
    store::{Answer, Store},
};

const INSTALL: &str = "apt-get install etcd-server";

/// An etcd has no options of its own.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions;

impl Store for EtcdOptions {
    fn scheme(&self) -> &'static str {
        "etcd"
    }

    /// One for clients, one for the other members, which etcd opens even without any.
    fn ports(&self) -> usize {
        2
    }

    fn command(
        &self,
        common: &Common,
        home: &Path,
        addrs: &[SocketAddr],
    ) -> Result<Vec<OsString>, LabError> {
        let mut command = vec![common.program("etcd", INSTALL)?.into_os_string()];
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
        command.extend(common.args.iter().cloned());
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
