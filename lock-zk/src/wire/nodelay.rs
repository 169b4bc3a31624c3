//! Switches off Nagle's algorithm.
//!
//! An acquire sends two requests at once. The client crate writes them one by one. It does not set
//! TCP_NODELAY, and lets no caller set it. So the second request would wait in the kernel for the
//! answer to the first: one network round trip more per acquire. Linux lets a process duplicate its
//! own descriptors by number, so we find the connection and set the option on a duplicate, which is
//! the same socket. Where that is not allowed, nothing breaks and the round trip stays.

/// Sets TCP_NODELAY on this process's connections to the ports of these hosts.
pub(crate) async fn set(hosts: &[String]) {
    #[cfg(target_os = "linux")]
    {
        let ports = hosts.iter().filter_map(|host| host.rsplit_once(':')?.1.parse().ok());
        let ports: Vec<u16> = ports.collect();
        // A process with many descriptors has a long list to read.
        let set = tokio::task::spawn_blocking(move || linux::set(&ports)).await;
        if let Ok(Err(error)) = set {
            tracing::debug!(target: "distlock", %error, "cannot set TCP_NODELAY");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = hosts;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, io, os::fd::OwnedFd};

    use rustix::{
        net::{SocketAddrAny, getpeername, sockopt},
        process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
    };

    pub(super) fn set(ports: &[u16]) -> io::Result<()> {
        let this = pidfd_open(getpid(), PidfdFlags::empty())?;
        for entry in fs::read_dir("/proc/self/fd")? {
            let entry = entry?;
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if !target.to_string_lossy().starts_with("socket:") {
                continue;
            }
            let Some(number) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            // It may have been closed since; then the number is unused, or another socket's.
            if let Ok(socket) = pidfd_getfd(&this, number, PidfdGetfdFlags::empty())
                && peer_port(&socket).is_some_and(|port| ports.contains(&port))
            {
                // Fails for a socket that is no TCP connection, and so not the wanted one.
                let _ = sockopt::set_tcp_nodelay(&socket, true);
            }
        }
        Ok(())
    }

    fn peer_port(socket: &OwnedFd) -> Option<u16> {
        let peer: SocketAddrAny = getpeername(socket).ok()??;
        let address: std::net::SocketAddr = peer.try_into().ok()?;
        Some(address.port())
    }
}
