//! The reports of nodes and sentinels about each other.

use std::{net::SocketAddr, time::Duration};

use tokio::time::timeout;

use super::{Redis, SERVICE, Sentinel};

/// Longest wait for one answer. A stopped server gives none.
const LIMIT: Duration = Duration::from_secs(1);

/// A node's report about its replication.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Link {
    /// The node that it follows; `None` if it is a primary.
    pub(super) primary: Option<SocketAddr>,
    /// Whether it is linked to that primary and has its data.
    pub(super) is_up: bool,
}

impl Link {
    pub(super) async fn of(node: &Redis) -> Option<Self> {
        let asked = timeout(LIMIT, node.command(&[b"INFO", b"replication"]));
        Self::read(&asked.await.ok()?.ok()?)
    }

    fn read(info: &str) -> Option<Self> {
        let primary = match value(info, "role")? {
            "master" => None,
            _ => Some(addr(value(info, "master_host")?, value(info, "master_port")?)?),
        };
        Some(Self { primary, is_up: value(info, "master_link_status") == Some("up") })
    }
}

/// Returns the primary that a sentinel names.
pub(super) async fn named(sentinel: &Sentinel) -> Option<SocketAddr> {
    let reply = ask(sentinel, "GET-MASTER-ADDR-BY-NAME").await?;
    let (host, port) = reply.split_once('\n')?;
    addr(host, port)
}

/// Returns `Some` if a sentinel reaches all these replicas, and this many sentinels with itself.
pub(super) async fn can_promote(
    sentinel: &Sentinel,
    replicas: &[SocketAddr],
    sentinels: usize,
) -> Option<()> {
    let quorum = format!("OK {sentinels} ");
    ask(sentinel, "CKQUORUM").await.filter(|reply| reply.starts_with(&quorum))?;
    let known = ask(sentinel, "REPLICAS").await?;
    let healthy = healthy(&known);
    replicas.iter().all(|replica| healthy.contains(replica)).then_some(())
}

async fn ask(sentinel: &Sentinel, question: &str) -> Option<String> {
    let command = [&b"SENTINEL"[..], question.as_bytes(), SERVICE.as_bytes()];
    timeout(LIMIT, sentinel.command(&command)).await.ok()?.ok()
}

/// Reads the list of replicas, where each name and each value is a line of its own. Returns the
/// replicas without a flag such as `s_down` or `disconnected`.
fn healthy(list: &str) -> Vec<SocketAddr> {
    let lines: Vec<_> = list.lines().collect();
    let (mut host, mut port, mut found) = ("", "", Vec::new());
    for pair in lines.windows(2) {
        match pair {
            ["ip", value] => host = value,
            ["port", value] => port = value,
            ["flags", "slave"] => found.extend(addr(host, port)),
            _ => {}
        }
    }
    found
}

fn value<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = info.lines().filter_map(|line| line.trim_end().split_once(':'));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn addr(host: &str, port: &str) -> Option<SocketAddr> {
    Some((host.parse::<std::net::IpAddr>().ok()?, port.parse().ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_in_info() {
        let primary = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n";
        assert_eq!(Link::read(primary), Some(Link { primary: None, is_up: false }));
        let replica = "role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:7\r\n";
        let link = |is_up| Link { primary: Some(([127, 0, 0, 1], 7).into()), is_up };
        assert_eq!(Link::read(&format!("{replica}master_link_status:up\r\n")), Some(link(true)));
        assert_eq!(Link::read(&format!("{replica}master_link_status:down\r\n")), Some(link(false)));
        assert_eq!(Link::read("nonsense"), None);
    }

    #[test]
    fn replicas_with_flags() {
        let list = "name\na\nip\n10.0.0.1\nport\n1\nrunid\nx\nflags\nslave\n\
                    name\nb\nip\n10.0.0.2\nport\n2\nrunid\n\nflags\ns_down,slave\nslave-priority\n1";
        assert_eq!(healthy(list), [([10, 0, 0, 1], 1).into()]);
    }
}
