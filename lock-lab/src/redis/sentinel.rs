//! One sentinel of a [`RedisSentinels`](crate::RedisSentinels).

use std::{net::SocketAddr, ops::Deref, path::Path, time::Duration};

use super::{
    ask, counters,
    options::{INSTALL, PROGRAM},
    resp::Connection,
    role::write_once,
    secured::{self, LAB_PASSWORD, Login},
};
use crate::{
    Counters, LabError, Server,
    options::Common,
    store::{Answer, Arguments, Store},
};

/// The name of the primary for sentinels.
pub(super) const SERVICE: &str = "lab";

/// The longest failover. The next attempt starts after twice this time.
const FAILOVER: Duration = Duration::from_secs(3);

/// A private Redis Sentinel, one of the watchers of a [`RedisSentinels`](crate::RedisSentinels).
///
/// It is a [`Server`] like the others. A restart keeps its state.
#[derive(Debug)]
pub struct Sentinel {
    server: Server,
    password: Option<String>,
}

impl Sentinel {
    pub(super) async fn start(common: &Common, watch: Watch) -> Result<Self, LabError> {
        let password = watch.password();
        Ok(Self { server: Server::start(common, &watch).await?, password })
    }

    /// Runs one command on a connection of its own and returns the reply as text, as
    /// [`Redis::command`](crate::Redis::command) does.
    pub async fn command(&self, args: &[&[u8]]) -> Result<String, LabError> {
        Ok(ask(&self.server, self.password.clone(), args).await?.to_string())
    }
}

impl Deref for Sentinel {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// The target and the settings of a sentinel.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) primary: SocketAddr,
    pub(super) quorum: usize,
    pub(super) down_after: Duration,
    /// The authority of the nodes' certificates, if they speak TLS.
    pub(super) nodes: Option<String>,
    /// A user of the sentinel and of the nodes.
    pub(super) user: Option<Login>,
}

impl Watch {
    /// The lab's own password, if logins are demanded.
    fn password(&self) -> Option<String> {
        self.user.as_ref().map(|_| LAB_PASSWORD.to_owned())
    }

    fn secured(&self, common: &Common, home: &Path, addr: SocketAddr) -> Result<String, LabError> {
        let mut lines = String::new();
        if let Some(tls) = &common.tls {
            let settings = secured::settings(tls, self.nodes.as_deref(), home, addr.port())?;
            settings.iter().for_each(|[name, value]| lines += &format!("{name} {value}\n"));
        }
        if let Some(user) = &self.user {
            lines += &format!(
                "requirepass {LAB_PASSWORD}\nsentinel sentinel-pass {LAB_PASSWORD}\n\
                 sentinel auth-pass {SERVICE} {LAB_PASSWORD}\nuser {}\n",
                user.rule().join(" ")
            );
        }
        Ok(lines)
    }

    fn config(&self, home: &Path, addr: SocketAddr) -> String {
        let (primary, quorum) = (self.primary, self.quorum);
        let [down_after, failover_timeout] =
            [self.down_after, FAILOVER].map(|time| time.as_millis());
        format!(
            "port {}\nbind {}\nprotected-mode no\ndir {}\n\
             sentinel monitor {SERVICE} {} {} {quorum}\n\
             sentinel down-after-milliseconds {SERVICE} {down_after}\n\
             sentinel failover-timeout {SERVICE} {failover_timeout}\n",
            addr.port(),
            addr.ip(),
            home.display(),
            primary.ip(),
            primary.port(),
        )
    }
}

impl Store for Watch {
    fn scheme(&self) -> &'static str {
        "redis-sentinel"
    }

    fn ports(&self, common: &Common) -> usize {
        if common.tls.is_some() { 2 } else { 1 }
    }

    fn control(&self, common: &Common) -> usize {
        self.ports(common) - 1
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program(PROGRAM, INSTALL).map(drop)
    }

    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        let file = home.join("sentinel.conf");
        // From its first start on, the file belongs to the sentinel.
        let config = self.config(home, addrs[self.control(common)])
            + &self.secured(common, home, addrs[0])?;
        write_once(&file, &config).map_err(LabError::io("writing sentinel.conf"))?;
        let program = common.program(PROGRAM, INSTALL)?;
        Ok(vec![program.into(), file.into(), "--sentinel".into()])
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            Connection::open(addr, self.password().as_deref()).await?.call(&[b"PING"]).await?;
            Ok(())
        })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(async move { counters::read(addr, self.password().as_deref()).await })
    }
}
