//! Keys in Redis, through the bare client.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult, Script,
    aio::MultiplexedConnection, cmd,
};

use crate::{Failure, KeySpace, Keys, Nature};

/// The script printed in the articles.
const COMPARE_AND_DEL: &str = "\
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const COMPARE_AND_EXPIRE: &str = "\
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) \
else return 0 end";
const COMPARE_AND_DECR: &str = "\
if tonumber(redis.call('get', KEYS[1]) or '0') > 0 then return redis.call('decr', KEYS[1]) \
else return -1 end";

/// Longest wait for an answer. The crate's own, half a second, is too short where other plays run.
const LIMIT: Option<Duration> = Some(Duration::from_secs(5));

/// Opens a connection that waits for an answer also on a busy machine.
pub(crate) async fn open(client: &Client) -> RedisResult<MultiplexedConnection> {
    let patient = AsyncConnectionConfig::new();
    let patient = patient.set_connection_timeout(LIMIT).set_response_timeout(LIMIT);
    client.get_multiplexed_async_connection_with_config(&patient).await
}

#[derive(Clone, Debug)]
pub(crate) struct RedisKeys(Client);

impl RedisKeys {
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        Ok(Self(Client::open(url)?))
    }
}

#[async_trait]
impl KeySpace for RedisKeys {
    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        Ok(Arc::new(Connected(open(&self.0).await?)))
    }
}

struct Connected(MultiplexedConnection);

impl Connected {
    async fn send<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        Ok(command.query_async(&mut self.0.clone()).await?)
    }

    async fn script(&self, script: &str, key: &str, arguments: &[&str]) -> Result<i64, Failure> {
        let script = Script::new(script);
        let mut call = script.key(key);
        for argument in arguments {
            call.arg(*argument);
        }
        Ok(call.invoke_async(&mut self.0.clone()).await?)
    }
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl Keys for Connected {
    async fn set_nx(&self, key: &str, value: &str, ttl: Option<Duration>) -> Result<bool, Failure> {
        let Some(ttl) = ttl else { return self.send(cmd("SETNX").arg(key).arg(value)).await };
        let mut set = cmd("SET");
        set.arg(key).arg(value).arg("NX").arg("PX").arg(millis(ttl));
        Ok(self.send::<Option<String>>(&set).await?.is_some())
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        self.send(cmd("SET").arg(key).arg(value)).await
    }

    async fn expire(&self, key: &str, ttl: Duration, of: Option<&str>) -> Result<bool, Failure> {
        let ttl = millis(ttl);
        let Some(value) = of else { return self.send(cmd("PEXPIRE").arg(key).arg(ttl)).await };
        Ok(self.script(COMPARE_AND_EXPIRE, key, &[value, &ttl.to_string()]).await? == 1)
    }

    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure> {
        let left: i64 = self.send(cmd("PTTL").arg(key)).await?;
        Ok(match left {
            -2 => None,
            left => Some(u64::try_from(left).ok().map(Duration::from_millis)),
        })
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        self.send(cmd("GET").arg(key)).await
    }

    async fn del(&self, key: &str, of: Option<&str>) -> Result<bool, Failure> {
        let Some(value) = of else { return self.send(cmd("DEL").arg(key)).await };
        Ok(self.script(COMPARE_AND_DEL, key, &[value]).await? == 1)
    }

    async fn decr(&self, key: &str, unless_empty: bool) -> Result<Option<i64>, Failure> {
        if !unless_empty {
            return self.send(cmd("DECR").arg(key)).await.map(Some);
        }
        let left = self.script(COMPARE_AND_DECR, key, &[]).await?;
        Ok(Some(left).filter(|left| *left >= 0))
    }
}
