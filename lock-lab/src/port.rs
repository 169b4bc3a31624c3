//! The addresses of servers.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
};

use crate::Place;

/// The range of ports for servers.
///
/// It lies below the range from which the kernel takes the ports of outgoing connections. A port
/// from that range could go to such a connection between the kill of a server and its restart, and
/// a client that reconnects to a dead port could even connect to itself.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// The first port of a server that has an address of its own.
const FIRST: u16 = 20_000;

/// The address of a server's port in a place: clients use port 0.
pub(crate) fn addr_in(place: Place, port: usize) -> SocketAddr {
    (place.ip(), FIRST + port as u16).into()
}

/// A TCP port that no other server uses while this value lives.
#[derive(Debug)]
pub(crate) struct Port {
    addr: SocketAddr,
    /// On 127.0.0.1, which all labs on this machine share. The servers speak TCP only, so a UDP
    /// socket with the same number marks the port as taken, also for other processes. The kernel
    /// removes the mark at any end of this process.
    _mark: Option<UdpSocket>,
}

impl Port {
    /// The ports of the only server in a place. They are the same in each run.
    pub(crate) fn of_place(place: Place, count: usize) -> Vec<Self> {
        (0..count).map(|port| Self { addr: addr_in(place, port), _mark: None }).collect()
    }

    pub(crate) fn reserve() -> io::Result<Self> {
        let seed = RandomState::new().hash_one(std::process::id());
        let first = RANGE.start + (seed % RANGE.len() as u64) as u16;
        (first..RANGE.end)
            .chain(RANGE.start..first)
            .find_map(|number| Self::take(number).ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "no free port"))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn take(number: u16) -> io::Result<Self> {
        let addr = (Ipv4Addr::LOCALHOST, number).into();
        let mark = UdpSocket::bind(addr)?;
        TcpListener::bind(addr)?;
        Ok(Self { addr, _mark: Some(mark) })
    }
}
