//! The servers, the proxy, and what they leave behind.

mod cleanup;
mod clocks;
mod etcd;
mod etcd_tls;
mod mariadb;
mod own_process;
mod pool;
mod postgres;
mod programs;
mod proxy;
mod redis;
mod redis_cluster;
mod redis_independent;
mod redis_sentinels;
mod start;
mod support;
mod zookeeper;

use std::net::{SocketAddr, TcpStream};

use lock_lab::LabError;

fn timed_out(error: &LabError) -> bool {
    matches!(error, LabError::Io { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
}

fn is_open(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).is_ok()
}
