//! The settings of one node of a cluster.

use std::{ffi::OsString, time::Duration};

use crate::redis::role;

/// The settings of one node of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) node_timeout: Duration,
}

impl Member {
    /// For clients, and for the other nodes. By default the second is the first plus 10,000, where
    /// the kernel's range for outgoing connections may be.
    pub(crate) const PORTS: usize = 2;

    pub(crate) fn settings(self, bus_port: u16) -> Vec<OsString> {
        let (port, timeout) = (bus_port.to_string(), self.node_timeout.as_millis().to_string());
        let own = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
        let ports = ["--cluster-port", &port, "--cluster-node-timeout", &timeout];
        // Any replica may take over, however long its link has been down.
        let replica = ["--cluster-replica-validity-factor", "0"];
        let all = own.iter().chain(&ports).chain(&replica).chain(&role::SETTINGS);
        all.map(|setting| OsString::from(*setting)).collect()
    }
}
