//! One sentinel of a [`RedisSentinels`](crate::RedisSentinels).

use std::{ffi::OsString, net::SocketAddr, ops::Deref, path::Path, time::Duration};

use super::{
    ask, info,
    options::{INSTALL, PROGRAM},
    resp::Connection,
    role::write_once,
};
use crate::{
    Counters, LabError, Server,
    options::Common,
    store::{Answer, Store},
};

/// The name of the primary for sentinels.
pub(super) const SERVICE: &str = "lab";

/// A private Redis Sentinel, one of the watchers of a [`RedisSentinels`](crate::RedisSentinels).
///
/// It is a [`Server`] like the others. A restart keeps its state.
#[derive(Debug)]
pub struct Sentinel {
    server: Server,
}

impl Sentinel {
    pub(super) async fn start(common: &Common, watch: Watch) -> Result<Self, LabError> {
        Ok(Self { server: Server::start(common, &watch).await? })
    }

    /// Runs one command on a connection of its own and returns the reply as text, as
    /// [`Redis::command`](crate::Redis::command) does.
    ///
    /// # Errors
    ///
    /// Same as [`Redis::command`](crate::Redis::command).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub async fn command(&self, args: &[&[u8]]) -> Result<String, LabError> {
        Ok(ask(&self.server, None, args).await?.to_string())
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
    pub(super) failover_timeout: Duration,
}

impl Watch {
    fn config(&self, home: &Path, addr: SocketAddr) -> String {
        let (primary, quorum) = (self.primary, self.quorum);
        let [down_after, failover_timeout] =
            [self.down_after, self.failover_timeout].map(|time| time.as_millis());
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

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program(PROGRAM, INSTALL).map(drop)
    }

    fn command(
        &self,
        common: &Common,
        home: &Path,
        addrs: &[SocketAddr],
    ) -> Result<Vec<OsString>, LabError> {
        let file = home.join("sentinel.conf");
        // From its first start on, the file belongs to the sentinel.
        write_once(&file, &self.config(home, addrs[0]))
            .map_err(LabError::io("writing sentinel.conf"))?;
        let program = common.program(PROGRAM, INSTALL)?;
        Ok(vec![program.into(), file.into(), "--sentinel".into()])
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            Connection::open(addr, None).await?.call(&[b"PING"]).await?;
            Ok(())
        })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(info::counters(addr, None))
    }
}
