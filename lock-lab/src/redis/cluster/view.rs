//! A node's view of the cluster.

use std::{net::SocketAddr, ops::RangeInclusive, time::Duration};

use tokio::time::timeout;

use crate::Redis;

/// Longest wait for one answer. A stopped server gives none.
const LIMIT: Duration = Duration::from_secs(1);

/// The cluster as one node sees it.
#[derive(Debug)]
pub(super) struct View {
    pub(super) nodes: Vec<Seen>,
}

/// One node as another one, or itself, sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) addr: SocketAddr,
    pub(super) bus: u16,
    pub(super) is_me: bool,
    pub(super) is_primary: bool,
    pub(super) is_failing: bool,
    pub(super) primary: Option<String>,
    pub(super) slots: Vec<RangeInclusive<u16>>,
}

impl View {
    pub(super) async fn of(node: &Redis) -> Option<Self> {
        let text = ask(node, &[b"CLUSTER", b"NODES"]).await?;
        Some(Self { nodes: text.lines().filter_map(Seen::read).collect() })
    }

    pub(super) fn me(&self) -> Option<&Seen> {
        self.nodes.iter().find(|seen| seen.is_me)
    }

    pub(super) fn owner_of(&self, slot: u16) -> Option<&Seen> {
        self.nodes.iter().find(|seen| seen.slots.iter().any(|range| range.contains(&slot)))
    }
}

impl Seen {
    /// Reads a line: id, address, flags, primary, three times, link, slots.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let id = fields.next()?.to_owned();
        let (addr, bus) = fields.next()?.split_once('@')?;
        // The host's name may follow.
        let bus = bus.split(',').next()?.parse().ok()?;
        // A node knows its own host when others have reached it.
        let addr = if addr.starts_with(':') { format!("0.0.0.0{addr}") } else { addr.to_owned() };
        let addr = addr.parse().ok()?;
        let flags: Vec<_> = fields.next()?.split(',').collect();
        let primary = fields.next().filter(|id| *id != "-").map(str::to_owned);
        let is = |flag: &str| flags.contains(&flag);
        Some(Self {
            id,
            addr,
            bus,
            is_me: is("myself"),
            is_primary: is("master"),
            is_failing: is("fail") || is("fail?") || is("handshake"),
            primary,
            slots: fields.skip(4).filter_map(slots).collect(),
        })
    }
}

/// Reads `5` or `5-9`; `None` for a slot that moves, such as `[5->-id]`.
fn slots(field: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = field.split_once('-').unwrap_or((field, field));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

pub(super) fn number(info: &str, name: &str) -> Option<u64> {
    let mut fields = info.lines().filter_map(|line| line.trim_end().split_once(':'));
    fields.find(|(key, _)| *key == name)?.1.parse().ok()
}

pub(super) async fn ask(node: &Redis, command: &[&[u8]]) -> Option<String> {
    timeout(LIMIT, node.command(command)).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cluster_nodes() {
        let line = "ab 127.0.0.1:7@17 myself,master - 0 0 2 connected 0-4 9 [5->-cd] [6-<-cd]";
        let seen = Seen::read(line).unwrap();
        assert_eq!((seen.id.as_str(), seen.is_me, seen.is_primary), ("ab", true, true));
        assert_eq!((seen.addr.port(), seen.bus, seen.primary.clone()), (7, 17, None));
        assert_eq!(Seen::read("ab :7@17 myself,master - 0 0 2 connected").unwrap().bus, 17);
        assert_eq!(seen.slots, [0..=4, 9..=9]);
        let view = View { nodes: vec![seen.clone()] };
        assert_eq!(view.owner_of(9), Some(&seen));
        assert_eq!(view.owner_of(5), None);
        assert_eq!(number("# Replication\r\nrole:slave\r\nx:7\r\n", "x"), Some(7));
        let line = "cd 127.0.0.1:8@18 slave,fail? ab 0 0 2 disconnected";
        let seen = Seen::read(line).unwrap();
        assert_eq!((seen.primary.as_deref(), seen.is_failing), (Some("ab"), true));
        assert!(!seen.is_primary && seen.slots.is_empty());
    }
}
