//! The numbers that an etcd counts.

use std::net::SocketAddr;

use super::gateway;
use crate::{Counters, LabError};

/// The method that the lab calls to read the numbers.
const OWN: &str = "LeaseLeases";

pub(super) async fn read(addr: SocketAddr) -> Result<Counters, LabError> {
    let metrics = gateway::get(addr, "/metrics").await?;
    let mut counters: Counters = metrics.lines().filter_map(number).collect();
    counters.add("leases", gateway::leases(addr).await?.len() as u64);
    Ok(counters)
}

/// Reads one line of the metrics, if its number is used.
fn number(line: &str) -> Option<(String, u64)> {
    let (series, value) = line.rsplit_once(' ')?;
    // Large numbers are written like 1e+06.
    let value = value.parse::<f64>().ok()? as u64;
    let name = series.split('{').next()?;
    let key = match name {
        "etcd_debugging_mvcc_keys_total" => "keys".to_owned(),
        "etcd_mvcc_db_total_size_in_use_in_bytes" => "bytes_in_use".to_owned(),
        "etcd_debugging_mvcc_watcher_total" => "watchers".to_owned(),
        "etcd_debugging_mvcc_slow_watcher_total" => "watchers_behind".to_owned(),
        "etcd_debugging_mvcc_watch_stream_total" => "watch_streams".to_owned(),
        "etcd_server_proposals_committed_total" => "proposals".to_owned(),
        "grpc_server_started_total" => format!("rpc.{}", method(series)?),
        "grpc_server_msg_received_total" => format!("msg.{}", method(series)?),
        "grpc_server_msg_sent_total" => format!("sent.{}", method(series)?),
        _ => return None,
    };
    Some((key, value))
}

fn method(series: &str) -> Option<&str> {
    let (_, rest) = series.split_once("grpc_method=\"")?;
    let (method, _) = rest.split_once('"')?;
    (method != OWN).then_some(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_metrics() {
        let of = |line| number(line).map(|(key, value)| format!("{key} {value}"));
        let txn = r#"grpc_server_started_total{grpc_method="Txn",grpc_type="unary"} 1.5e+06"#;
        assert_eq!(of(txn).unwrap(), "rpc.Txn 1500000");
        assert_eq!(of(r#"grpc_server_started_total{grpc_method="LeaseLeases"} 3"#), None);
        assert_eq!(of("etcd_debugging_mvcc_watcher_total 7").unwrap(), "watchers 7");
        assert_eq!(of("# TYPE etcd_debugging_mvcc_watcher_total gauge"), None);
    }
}
