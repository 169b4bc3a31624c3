//! Several Redis servers without a link between them.

use std::{net::SocketAddr, ops::Deref};

use super::Redis;
use crate::{Builder, LabError, Network, Place};

/// Several Redis servers without a link between them, as Redlock needs them.
///
/// It is a list of [`Redis`]. Each can be stopped, killed and restarted with its data, and its
/// clocks can be moved. Without a [`Network`] all run on 127.0.0.1; in one, each has a place of its
/// own.
#[derive(Debug)]
pub struct IndependentRedis {
    nodes: Vec<Redis>,
}

impl IndependentRedis {
    /// Starts this many servers with default options on 127.0.0.1, and waits until all answer.
    pub async fn start(count: usize) -> Result<Self, LabError> {
        Redis::builder().start_independent(count).await
    }

    /// Starts this many servers with default options in a network, and waits until all answer.
    pub async fn start_on(network: &Network, count: usize) -> Result<Self, LabError> {
        Redis::builder().on(network).start_independent(count).await
    }

    /// Returns the addresses for clients, in order.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.iter().map(|node| node.addr()).collect()
    }

    /// Returns the URLs for clients, in order.
    pub fn urls(&self) -> Vec<String> {
        self.iter().map(|node| node.url()).collect()
    }

    /// Returns the places of the servers, in order. Empty if they are on 127.0.0.1.
    pub fn places(&self) -> Vec<Place> {
        self.iter().filter_map(|node| node.place()).collect()
    }
}

impl Deref for IndependentRedis {
    type Target = [Redis];

    fn deref(&self) -> &[Redis] {
        &self.nodes
    }
}

impl Builder<Redis> {
    /// Starts this many servers with these options, and waits until all answer.
    pub async fn start_independent(self, count: usize) -> Result<IndependentRedis, LabError> {
        let mut nodes = Vec::with_capacity(count);
        for _ in 0..count {
            nodes.push(self.clone().start().await?);
        }
        Ok(IndependentRedis { nodes })
    }
}
