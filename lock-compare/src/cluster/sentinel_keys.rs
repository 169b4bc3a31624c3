//! Keys of the Redis that sentinels name.

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use redis::{Client, cmd};

use crate::{
    Failure, KeySpace, Keys, Nature,
    keys::{RedisKeys, open_redis},
};

/// The keys of the server that the sentinels name as the primary when a client connects.
#[derive(Clone, Debug)]
pub(crate) struct SentinelKeys {
    sentinels: Vec<SocketAddr>,
    service: &'static str,
}

impl SentinelKeys {
    /// Keys of the primary that the sentinels watch under this name.
    pub(crate) fn new(sentinels: Vec<SocketAddr>, service: &'static str) -> Self {
        Self { sentinels, service }
    }

    /// Uses the first reply, as in the protocol for clients of sentinels.
    async fn primary(&self) -> Result<String, Failure> {
        for sentinel in &self.sentinels {
            let client = Client::open(format!("redis://{sentinel}"))?;
            let Ok(mut connection) = open_redis(&client).await else {
                continue;
            };
            let mut question = cmd("SENTINEL");
            question.arg("GET-MASTER-ADDR-BY-NAME").arg(self.service);
            let answer: Option<(String, u16)> = question.query_async(&mut connection).await?;
            if let Some((host, port)) = answer {
                return Ok(format!("redis://{host}:{port}"));
            }
        }
        Err("no sentinel names a primary".into())
    }
}

#[async_trait]
impl KeySpace for SentinelKeys {
    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        RedisKeys::new(&self.primary().await?)?.connect().await
    }
}
