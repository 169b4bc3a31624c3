//! ZooKeeper's commands of four letters.

use std::net::SocketAddr;

use crate::{LabError, ask};

pub(super) async fn send(addr: SocketAddr, word: &str) -> Result<String, LabError> {
    let reply = ask::exchange(addr, word.as_bytes()).await?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}
