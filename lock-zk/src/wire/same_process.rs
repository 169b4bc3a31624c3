//! Tells whether a connection from this machine is of this process.
//!
//! Linux lists all connections with the numbers of their sockets, and each process's descriptors with
//! the same numbers.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    net::{SocketAddr, SocketAddrV4},
};

/// Of this thread: it may be in another network than the rest of the process.
const CONNECTIONS: &str = "/proc/thread-self/net/tcp";
const DESCRIPTORS: &str = "/proc/self/fd";

/// Checks that this system tells.
pub(crate) fn check() -> io::Result<()> {
    let tells = || fs::metadata(DESCRIPTORS).is_ok() && File::open(CONNECTIONS).is_ok();
    if cfg!(target_os = "linux") && tells() {
        return Ok(());
    }
    let why = "tls=verify needs Linux with /proc; give a connector of zookeeper-client with its \
               feature tls instead";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Whether the other end of the connection from `from` to `to` is a descriptor of this process.
pub(crate) async fn is_own(from: SocketAddr, to: SocketAddr) -> bool {
    let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { return false };
    // Both lists may be long.
    let look = tokio::task::spawn_blocking(move || has(from, to));
    matches!(look.await, Ok(Ok(true)))
}

fn has(from: SocketAddrV4, to: SocketAddrV4) -> io::Result<bool> {
    let Some(socket) = socket(from, to)? else { return Ok(false) };
    let link = format!("socket:[{socket}]");
    let own = fs::read_dir(DESCRIPTORS)?.filter_map(Result::ok);
    let mut links = own.filter_map(|entry| fs::read_link(entry.path()).ok());
    Ok(links.any(|found| found.as_os_str() == link.as_str()))
}

/// Returns the number of the socket that is connected from `from` to `to`.
fn socket(from: SocketAddrV4, to: SocketAddrV4) -> io::Result<Option<u32>> {
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
