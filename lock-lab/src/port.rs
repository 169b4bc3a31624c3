//! Loopback ports for servers.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
};

/// The ports that servers get.
///
/// They lie below the range from which the kernel takes the ports of outgoing connections. From
/// within it, such a connection could take the port of a killed server before its restart, and a
/// client that reconnects to a dead port could even connect to itself.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A TCP port of 127.0.0.1 that no other lab on this machine uses while this value lives.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// The servers speak TCP only, so a UDP socket with the same number marks the port as taken,
    /// also for other processes, and the kernel removes the mark however this process ends.
    _mark: UdpSocket,
}

impl Port {
    /// Finds a free port.
    pub(crate) fn reserve() -> io::Result<Self> {
        let seed = RandomState::new().hash_one(std::process::id());
        let first = RANGE.start + (seed % RANGE.len() as u64) as u16;
        (first..RANGE.end)
            .chain(RANGE.start..first)
            .find_map(|number| Self::take(number).ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "no free port"))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    fn take(number: u16) -> io::Result<Self> {
        let mark = UdpSocket::bind((Ipv4Addr::LOCALHOST, number))?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number))?;
        Ok(Self { number, _mark: mark })
    }
}
