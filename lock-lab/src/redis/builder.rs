//! The options of a private Redis.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Redis, info, resp::Connection};
use crate::{
    Counters, LabError, Server, program,
    store::{Answer, Store},
};

const INSTALL: &str = "apt-get install redis-server";

/// Options for [`Redis`].
#[derive(Clone, Debug)]
pub struct RedisBuilder {
    binary: PathBuf,
    password: Option<String>,
    appendonly: bool,
    in_memory: bool,
    args: Vec<OsString>,
}

impl Default for RedisBuilder {
    fn default() -> Self {
        Self {
            binary: "redis-server".into(),
            password: None,
            appendonly: true,
            in_memory: false,
            args: Vec::new(),
        }
    }
}

impl RedisBuilder {
    /// Demands a password from clients. It is part of [`Server::url`]. Default: none.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets whether each write reaches the disk before its reply (`appendfsync always`).
    ///
    /// Without it a restart loses everything. Default: true.
    pub fn appendonly(mut self, appendonly: bool) -> Self {
        self.appendonly = appendonly;
        self
    }

    /// Keeps nothing on disk: for benchmarks. A restart loses everything. Default: off.
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self.appendonly = false;
        self
    }

    /// Sets the program: a name to look for in `PATH`, or a path. Default: `redis-server`.
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
    pub async fn start(self) -> Result<Redis, LabError> {
        let password = self.password.clone();
        Ok(Redis { server: Server::start(self).await?, password })
    }
}

impl Store for RedisBuilder {
    fn scheme(&self) -> &'static str {
        "redis"
    }

    fn in_memory(&self) -> bool {
        self.in_memory
    }

    fn login(&self) -> String {
        let encoded = |password| utf8_percent_encode(password, NON_ALPHANUMERIC);
        self.password.as_deref().map(|p| format!(":{}@", encoded(p))).unwrap_or_default()
    }

    fn command(&self, home: &Path, addrs: &[SocketAddr]) -> Result<Vec<OsString>, LabError> {
        let mut command = vec![program::find(&self.binary, INSTALL)?.into_os_string()];
        let appendonly = if self.appendonly { "yes" } else { "no" };
        let port = addrs[0].port().to_string();
        let options = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"];
        let disk = ["--appendonly", appendonly, "--appendfsync", "always", "--dir"];
        command.extend(options.iter().chain(&disk).map(OsString::from));
        command.push(home.into());
        if let Some(password) = &self.password {
            command.extend(["--requirepass".into(), password.into()]);
        }
        command.extend(self.args.iter().cloned());
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
        Box::pin(info::counters(addr, self.password.as_deref()))
    }
}
