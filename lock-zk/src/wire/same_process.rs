//! Tells whether a connection from this machine is of this process.
//!
//! Linux tells the number of a connection's socket, and lists each process's descriptors with the
//! same number.

use std::{io, net::SocketAddr};

/// Checks that this system tells.
pub(crate) fn check() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    let readable = std::fs::metadata("/proc/self/fd").is_ok();
    #[cfg(not(target_os = "linux"))]
    let readable = false;
    let unsupported = || {
        let why = "tls=verify needs Linux with /proc; give a connector of zookeeper-client with \
                   its feature tls instead";
        io::Error::new(io::ErrorKind::Unsupported, why)
    };
    if readable { Ok(()) } else { Err(unsupported()) }
}

/// Whether the other end of the connection from `from` to `to` is a descriptor of this process.
pub(crate) async fn is_own(from: SocketAddr, to: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { return false };
        // A process with many descriptors has a long list.
        let look = tokio::task::spawn_blocking(move || linux::is_own(from, to));
        matches!(look.await, Ok(Ok(true)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to);
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::{self, File},
        io::{self, BufRead, BufReader},
        net::SocketAddrV4,
    };

    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, netlink, recv, send,
        socket_with,
    };

    /// Of this thread: it may be in another network than the rest of the process.
    const CONNECTIONS: &str = "/proc/thread-self/net/tcp";
    /// The kernel's names for a question about sockets, and for all states and interfaces.
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const ANY: [u8; 4] = [0xff; 4];
    /// The head of a question and of its answer, and where the answer has the socket's number.
    const HEAD: usize = 16;
    const INODE: usize = HEAD + 68;

    pub(super) fn is_own(from: SocketAddrV4, to: SocketAddrV4) -> io::Result<bool> {
        let socket = match asked(from, to) {
            Ok(Some(socket)) => Some(socket),
            // Kernels without this question, or that do not permit it, give the same answer.
            _ => listed(from, to)?,
        };
        let Some(socket) = socket else { return Ok(false) };
        let link = format!("socket:[{socket}]");
        let own = fs::read_dir("/proc/self/fd")?.filter_map(Result::ok);
        let mut links = own.filter_map(|entry| fs::read_link(entry.path()).ok());
        Ok(links.any(|found| found.as_os_str() == link.as_str()))
    }

    /// Asks the kernel for the number of the socket that is connected from `from` to `to`: a list
    /// of all takes 100 times as long on a machine with 2,000 connections.
    pub(super) fn asked(from: SocketAddrV4, to: SocketAddrV4) -> io::Result<Option<u32>> {
        let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
        let kernel = socket_with(kind.0, kind.1, kind.2, Some(netlink::SOCK_DIAG))?;
        send(&kernel, &question(from, to), SendFlags::empty())?;
        let mut answer = [0; 512];
        let (_, length) = recv(&kernel, &mut answer[..], RecvFlags::DONTWAIT)?;
        let answer = &answer[..length];
        let is_found = answer.get(4..6) == Some(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        let inode = answer.get(INODE..INODE + 4).filter(|_| is_found);
        Ok(inode.and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?))))
    }

    /// `struct nlmsghdr` and `struct inet_diag_req_v2` of Linux.
    fn question(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
        // The family, the protocol, no extensions, all states.
        let tcp = ipproto::TCP.as_raw().get().to_ne_bytes()[0];
        let family = u8::try_from(AddressFamily::INET.as_raw()).unwrap_or_default();
        let mut body = vec![family, tcp, 0, 0];
        body.extend(ANY);
        body.extend([from.port().to_be_bytes(), to.port().to_be_bytes()].concat());
        for address in [from.ip(), to.ip()] {
            body.extend(address.octets());
            body.extend([0; 12]);
        }
        // Any interface, and no cookie.
        body.extend([[0; 4], ANY, ANY].concat());
        let length = u32::try_from(HEAD + body.len()).unwrap_or_default();
        let flags = [SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST].map(u16::to_ne_bytes).concat();
        [&length.to_ne_bytes()[..], &flags, &[0; 8], &body].concat()
    }

    /// Looks for the same number in the list of all connections.
    pub(super) fn listed(from: SocketAddrV4, to: SocketAddrV4) -> io::Result<Option<u32>> {
        let written = |addr: SocketAddrV4| {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(addr.ip().octets()), addr.port())
        };
        let (from, to) = (written(from), written(to));
        for line in BufReader::new(File::open(CONNECTIONS)?).lines().skip(1) {
            let line = line?;
            let mut words = line.split_ascii_whitespace().skip(1);
            if words.next() == Some(&from) && words.next() == Some(&to) {
                return Ok(words.nth(6).and_then(|number| number.parse().ok()));
            }
        }
        Ok(None)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        process::{Command, Stdio},
    };

    use super::*;

    #[tokio::test]
    async fn only_a_connection_of_this_process_is_its_own() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let ours = TcpStream::connect(to).unwrap();
        assert!(is_own(ours.local_addr().unwrap(), to).await);
        let _ = listener.accept().unwrap();
        let (SocketAddr::V4(from), SocketAddr::V4(to_v4)) = (ours.local_addr().unwrap(), to) else {
            panic!("{to}")
        };
        let socket = linux::asked(from, to_v4).unwrap();
        assert!(socket.is_some() && socket == linux::listed(from, to_v4).unwrap(), "{socket:?}");

        let connect = format!("exec 3<>/dev/tcp/{}/{}; echo; read -r _", to.ip(), to.port());
        let mut other = Command::new("bash")
            .args(["-c", &connect])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (_theirs, from) = listener.accept().unwrap();
        assert!(!is_own(from, to).await);
        drop(other.stdin.take());
        other.wait().unwrap();
    }
}
