//! The numbers that a ZooKeeper counts.

use std::net::SocketAddr;

use super::four_letter;
use crate::{Counters, LabError};

pub(super) async fn read(addr: SocketAddr) -> Result<Counters, LabError> {
    let reply = four_letter::send(addr, "mntr").await?;
    if !reply.starts_with("zk_") {
        return Err(LabError::Reply { server: "zookeeper", reply });
    }
    Ok(reply.lines().filter_map(number).collect())
}

/// Reads one line of `mntr`, if its number is used.
fn number(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once('\t')?;
    let key = match name {
        "zk_bytes_received_count" => "bytes_received",
        "zk_cnt_readlatency" => "requests.read",
        "zk_cnt_updatelatency" => "requests.update",
        "zk_connection_request_count" => "connections_total",
        "zk_ephemerals_count" => "ephemerals",
        "zk_global_sessions" => "sessions",
        "zk_num_alive_connections" => "connections",
        "zk_packets_received" => "packets_received",
        "zk_packets_sent" => "packets_sent",
        "zk_stale_sessions_expired" => "sessions_expired",
        "zk_sum_node_changed_watch_count" => "fired.changed",
        "zk_sum_node_children_watch_count" => "fired.children",
        "zk_sum_node_created_watch_count" => "fired.created",
        "zk_sum_node_deleted_watch_count" => "fired.deleted",
        "zk_watch_count" => "watches",
        "zk_znode_count" => "znodes",
        _ => return None,
    };
    Some((key, value.parse().ok()?))
}
