//! The options of a private Redis.

use std::{ffi::OsString, net::SocketAddr, path::Path};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    cluster::Member,
    counters,
    resp::Connection,
    role::{self, Role},
    secured::{self, Login},
};
use crate::{
    Counters, LabError,
    options::Common,
    store::{Answer, Arguments, Store},
};

pub(super) const PROGRAM: &str = "redis-server";
pub(super) const INSTALL: &str = "apt-get install redis-server";

#[derive(Clone, Debug)]
pub struct RedisOptions {
    pub(super) password: Option<String>,
    pub(super) appendonly: bool,
    /// The authority of the certificates of the other nodes, if it speaks TLS to them.
    pub(super) nodes: Option<String>,
    /// A user beside the default one.
    pub(super) user: Option<Login>,
    /// Its role at its first start, if it belongs to a primary with replicas.
    pub(super) role: Option<Role>,
    /// Its settings, if it is a node of a cluster.
    pub(super) member: Option<Member>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { password: None, appendonly: true, nodes: None, user: None, role: None, member: None }
    }
}

impl Store for RedisOptions {
    fn scheme(&self) -> &'static str {
        "redis"
    }

    fn login(&self) -> String {
        let encoded = |password| utf8_percent_encode(password, NON_ALPHANUMERIC);
        if let Some(Login { user, password }) = &self.user {
            return format!("{}:{}@", encoded(user), encoded(password));
        }
        self.password.as_deref().map(|p| format!(":{}@", encoded(p))).unwrap_or_default()
    }

    /// With TLS, the second port is without it, for the lab itself. A member of a cluster has one for
    /// the other members.
    fn ports(&self, common: &Common) -> usize {
        // The last one is for other nodes.
        self.control(common) + if self.member.is_some() { Member::PORTS } else { 1 }
    }

    fn control(&self, common: &Common) -> usize {
        usize::from(common.tls.is_some())
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program(PROGRAM, INSTALL).map(drop)
    }

    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        let (program, control) = (common.program(PROGRAM, INSTALL)?, self.control(common));
        let mut command = vec![program.clone().into_os_string()];
        if let Some(role) = self.role {
            command.push(role.file(home)?.into());
            command.extend(role::SETTINGS.map(OsString::from));
        }
        if let Some(member) = self.member {
            command.extend(member.settings(&program, addrs[control + 1].port()));
        }
        let appendonly = if self.appendonly && !common.in_memory { "yes" } else { "no" };
        let port = addrs[control].port().to_string();
        let host = addrs[0].ip().to_string();
        let options = ["--port", &port, "--bind", &host, "--save", "", "--daemonize", "no"];
        // Otherwise, Redis demands a password on other addresses than 127.0.0.1.
        let options = options.iter().chain(&["--protected-mode", "no"]);
        let disk = ["--appendonly", appendonly, "--appendfsync", "always", "--dir"];
        command.extend(options.chain(&disk).map(OsString::from));
        command.push(home.into());
        if let Some(password) = &self.password {
            command.extend(["--requirepass".into(), password.into()]);
            if self.role.is_some() || self.member.is_some() {
                command.extend(["--masterauth".into(), password.into()]);
            }
        }
        command.extend(self.user.iter().flat_map(Login::options));
        if let Some(tls) = &common.tls {
            let settings = secured::settings(tls, self.nodes.as_deref(), home, addrs[0].port())?;
            let option = |[name, value]: [String; 2]| [format!("--{name}"), value];
            command.extend(settings.into_iter().flat_map(option).map(OsString::from));
        }
        command.extend(common.args.iter().cloned());
        Ok(command)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            // While it loads its data, Redis answers with an error.
            Connection::open(addr, self.password.as_deref()).await?.call(&[b"PING"]).await?;
            Ok(())
        })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(counters::read(addr, self.password.as_deref()))
    }
}
