//! The settings of one node of a cluster.

use std::{ffi::OsString, path::Path, process::Command, time::Duration};

use crate::redis::role;

/// The settings of one node of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub(crate) node_timeout: Duration,
}

impl Member {
    /// For clients, and for the other nodes. By default the second is the first plus 10,000, where
    /// the kernel's range for outgoing connections may be.
    pub(crate) const PORTS: usize = 2;

    pub(crate) fn settings(self, program: &Path, bus_port: u16) -> Vec<OsString> {
        let (port, timeout) = (bus_port.to_string(), self.node_timeout.as_millis().to_string());
        let own = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
        let ports = ["--cluster-node-timeout", &timeout, "--cluster-port", &port];
        // An older server insists on the default.
        let ports = if is_before_7(program) { &ports[..2] } else { &ports };
        // Any replica may take over, however long its link has been down.
        let replica = ["--cluster-replica-validity-factor", "0"];
        let all = own.iter().chain(ports).chain(&replica).chain(&role::SETTINGS);
        all.map(|setting| OsString::from(*setting)).collect()
    }
}

/// Whether this is a Redis without the setting `cluster-port`.
fn is_before_7(program: &Path) -> bool {
    let version = Command::new(program).arg("--version").output();
    let version = String::from_utf8(version.map(|output| output.stdout).unwrap_or_default());
    major(&version.unwrap_or_default()).is_some_and(|major| major < 7)
}

/// The first number in `Redis server v=6.2.14 ..`.
fn major(version: &str) -> Option<u32> {
    version.split_once(" v=")?.1.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_servers() {
        assert_eq!(major("Redis server v=6.2.14 sha=40305114:0 malloc=libc"), Some(6));
        assert_eq!(major("Valkey server v=9.1.2 sha=00000000:1"), Some(9));
        assert_eq!(major(""), None);
    }
}
