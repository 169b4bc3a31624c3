//! The real program `etcdctl`, if it is installed.

use std::path::{Path, PathBuf};

use lock_core::StoreUrl;
use tokio::process::Command;

use crate::{Failure, terminal::Terminal};

/// The path in Debian's package, and another usual one.
const PLACES: [&str; 2] = ["/usr/bin/etcdctl", "/usr/local/bin/etcdctl"];
pub(crate) const INSTALL: &str = "etcdctl is not installed (apt-get install etcd-client)";

/// The program with the endpoints of a URL.
#[derive(Clone, Debug)]
pub(crate) struct Etcdctl {
    program: PathBuf,
    endpoints: String,
}

impl Etcdctl {
    pub(crate) fn find(url: &str) -> Result<Option<Self>, Failure> {
        let endpoints = StoreUrl::parse(url)?.hosts(2379).join(",");
        let program = PLACES.into_iter().map(Path::new).find(|path| path.is_file());
        Ok(program.map(|program| Self { program: program.to_owned(), endpoints }))
    }

    /// Returns the number that `etcdctl version` prints, such as `3.4.23`.
    pub(crate) async fn version(&self) -> Result<String, Failure> {
        let output = self.command(&["version"]).output().await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("etcdctl version: "));
        Ok(line.unwrap_or("of an unknown version").to_owned())
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Result<Terminal, Failure> {
        Terminal::start(self.command(arguments))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env("ETCDCTL_API", "3").arg("--endpoints").arg(&self.endpoints).args(arguments);
        command
    }
}
