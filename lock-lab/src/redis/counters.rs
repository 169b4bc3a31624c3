//! The numbers that a Redis counts.

use std::net::SocketAddr;

use super::resp::Connection;
use crate::{Counters, LabError};

/// The commands that the lab sends to read the numbers.
const OWN: [&str; 3] = ["auth", "client|list", "info"];

pub(super) async fn read(addr: SocketAddr, password: Option<&str>) -> Result<Counters, LabError> {
    let mut connection = Connection::open(addr, password).await?;
    let info = connection.call(&[b"INFO", b"all"]).await?.to_string();
    // Redis 7.0 has no counter for these clients.
    let subscribers = connection.call(&[b"CLIENT", b"LIST", b"TYPE", b"pubsub"]).await?.to_string();
    let mut counters: Counters = info.lines().filter_map(number).collect();
    counters
        .add("pubsub_clients", subscribers.lines().filter(|line| !line.is_empty()).count() as u64);
    Ok(counters)
}

/// Reads one line of `INFO`, if its number is used.
fn number(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.trim_end().split_once(':')?;
    if let Some(command) = name.strip_prefix("cmdstat_") {
        let calls = field(value, "calls=")?;
        return (!OWN.contains(&command)).then(|| (format!("cmd.{command}"), calls));
    }
    let key = match name {
        "connected_clients" => "clients",
        "pubsub_channels" => "pubsub_channels",
        _ if is_database(name) => return Some(("keys".to_owned(), field(value, "keys=")?)),
        _ => return None,
    };
    Some((key.to_owned(), value.parse().ok()?))
}

/// Returns the number after `label` in `a=1,b=2`.
fn field(value: &str, label: &str) -> Option<u64> {
    value.split(',').find_map(|part| part.strip_prefix(label))?.parse().ok()
}

fn is_database(name: &str) -> bool {
    name.strip_prefix("db").is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_info() {
        let of = |line| number(line).map(|(key, value)| format!("{key} {value}"));
        assert_eq!(of("cmdstat_evalsha:calls=3,usec=7,failed_calls=0\r").unwrap(), "cmd.evalsha 3");
        assert_eq!(of("cmdstat_info:calls=3,usec=7"), None);
        assert_eq!(of("db0:keys=4,expires=1,avg_ttl=0\r").unwrap(), "keys 4");
        assert_eq!(of("connected_clients:2\r").unwrap(), "clients 2");
        assert_eq!(of("# Clients\r"), None);
    }
}
