//! Asks nodes of a cluster for the owners of its slots.

use redis::{Cmd, RedisError, Value, cmd};

use crate::{config::Address, error::is_broken, wire::answer::bytes};

/// Number of slots.
pub(crate) const SLOTS: usize = 16384;

/// A range of slots: the first and the last, the primary, and the replicas.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Shard {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) primary: Address,
    pub(crate) replicas: Vec<Address>,
}

/// Returns the question for the slots. Each version has it.
pub(crate) fn question() -> Cmd {
    cmd("CLUSTER").arg("SLOTS").take()
}

/// Reads a node's answer. `asked`: its address, which it may leave out.
pub(crate) fn read(answer: &Value, asked: &Address) -> Option<Vec<Shard>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.iter().map(|range| shard(range, asked)).collect()
}

fn shard(range: &Value, asked: &Address) -> Option<Shard> {
    let Value::Array(fields) = range else { return None };
    let [Value::Int(first), Value::Int(last), nodes @ ..] = fields.as_slice() else { return None };
    let mut nodes = nodes.iter().map(|node| address(node, asked));
    let slot = |number: &i64| u16::try_from(*number).ok().filter(|n| usize::from(*n) < SLOTS);
    Some(Shard {
        first: slot(first)?,
        last: slot(last)?,
        primary: nodes.next()??,
        replicas: nodes.flatten().collect(),
    })
}

fn address(node: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(fields) = node else { return None };
    let [host, Value::Int(port), ..] = fields.as_slice() else { return None };
    let host = bytes(host).and_then(|host| String::from_utf8(host).ok());
    // A node that does not know its own address, or is told not to tell it.
    let known = host.filter(|host| !host.is_empty() && host != "?");
    let host = known.unwrap_or_else(|| asked.host.clone());
    Some(Address::new(host, u16::try_from(*port).ok().filter(|port| *port > 0)?))
}

/// Reads the address in a redirection, `HOST:PORT`. The host is empty if it is `asked`, that of the
/// node that redirects.
pub(crate) fn target(text: &str, asked: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() { asked } else { host };
    Some(Address::new(host, port.parse().ok()?))
}

/// Names the node in an error that does not.
pub(crate) fn explained(address: &Address, failed: RedisError) -> RedisError {
    let text = failed.to_string();
    if text.contains("cluster support disabled") {
        let why = format!("{address} is no node of a cluster: use redis://{address}");
        return RedisError::from((redis::ErrorKind::InvalidClientConfig, "no cluster", why));
    }
    match is_broken(&failed) {
        true => {
            let why = format!("the node {address}: {text}");
            std::io::Error::new(std::io::ErrorKind::ConnectionRefused, why).into()
        }
        false => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn ranges_are_read() {
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let range = |last| {
            let nodes = [node(text("10.0.0.1"), 7), node(Value::Nil, 8), node(text(""), 9)];
            let mut fields = vec![Value::Int(3), Value::Int(last)];
            fields.extend(nodes);
            Value::Array(vec![Value::Array(fields)])
        };
        let asked = Address::new("h", 1);
        let shards = read(&range(5), &asked).unwrap();
        assert_eq!((shards[0].first, shards[0].last), (3, 5));
        assert_eq!(shards[0].primary, Address::new("10.0.0.1", 7));
        assert_eq!(shards[0].replicas, [Address::new("h", 8), Address::new("h", 9)]);
        assert_eq!(read(&range(16384), &asked), None);
        assert_eq!(target("10.0.0.2:8", "h"), Some(Address::new("10.0.0.2", 8)));
        assert_eq!(target(":8", "h"), Some(Address::new("h", 8)));
    }
}
