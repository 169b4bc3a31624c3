//! Redis: `SET NX PX`, and a script that compares and deletes. The second floor has scripts that
//! touch the keys that distlock's do for a free lock: the lock, its queue, its fence, and the token
//! floor.

use std::sync::Arc;

use async_trait::async_trait;
use distlock::redis::RedisConfig;
use redis::{
    AsyncConnectionConfig, ConnectionAddr, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, Script, aio::MultiplexedConnection, io::tcp::TcpSettings,
};
use uuid::Uuid;

use super::own;
use crate::{
    Failure,
    contender::{Asked, Client, Opening, Role, Worker},
};

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Takes the key if no client waits, and counts.
const TAKE: &str = "\
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return '0' end
if redis.call('EXISTS', KEYS[2]) == 1 then return '0' end
local time = redis.call('TIME')
local token = time[1] .. string.sub('00000' .. time[2], -6)
if redis.call('GET', KEYS[4]) then return '0' end
redis.call('SET', KEYS[3], token, 'PX', 60000, 'GET')
return token";

/// Gives the key back if no client waits.
const GIVE: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
return redis.call('DEL', KEYS[1])";

pub(in crate::contender) fn open(Asked { url, ttl, role, .. }: Asked) -> Opening {
    Box::pin(async move {
        let RedisConfig { database, prefix, .. } = RedisConfig::from_url(&url)?;
        let mut login =
            RedisConnectionInfo::default().set_db(database).set_protocol(ProtocolVersion::RESP3);
        if let Some(user) = url.user() {
            login = login.set_username(user);
        }
        if let Some(password) = url.password() {
            login = login.set_password(password);
        }
        let hosts = url.hosts(6379);
        let (host, port) = hosts[0].rsplit_once(':').ok_or("the host has no port")?;
        let addr = ConnectionAddr::Tcp(host.trim_matches(['[', ']']).to_owned(), port.parse()?);
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = addr.into_connection_info()?.set_redis_settings(login).set_tcp_settings(tcp);
        // A crowd waits for longer than the client's own limits.
        let limits = AsyncConnectionConfig::new();
        let limits = limits.set_connection_timeout(None).set_response_timeout(None);
        let client = redis::Client::open(info)?;
        let connection = client.get_multiplexed_async_connection_with_config(&limits).await?;
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let scripts = match role {
            Role::FloorKeys => (Some(Script::new(TAKE)), Script::new(GIVE)),
            _ => (None, Script::new(COMPARE_AND_DELETE)),
        };
        let scripts = Arc::new(scripts);
        Ok(Box::new(Connected { connection, scripts, prefix, ttl }) as Box<dyn Client>)
    })
}

/// What takes, unless it is the plain `SET`, and what gives back.
type Scripts = (Option<Script>, Script);

#[derive(Clone)]
struct Connected {
    connection: MultiplexedConnection,
    scripts: Arc<Scripts>,
    prefix: String,
    /// In milliseconds.
    ttl: u64,
}

#[async_trait]
impl Client for Connected {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let lock = format!("{}{}", self.prefix, own(name));
        let [queue, fence, floor] =
            ["queue", "fence", "floor"].map(|part| format!("{{{lock}}}.{part}"));
        let owner = format!("{:016x}:{}", std::process::id(), Uuid::new_v4().simple());
        Ok(Box::new(Key { by: self.clone(), keys: [lock, queue, fence, floor], owner }))
    }
}

struct Key {
    by: Connected,
    /// The lock, its queue, its fence, and the token floor.
    keys: [String; 4],
    /// As long as distlock's attempts.
    owner: String,
}

#[async_trait]
impl Worker for Key {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let Connected { connection, scripts, ttl, .. } = &mut self.by;
        let taken = match &scripts.0 {
            Some(script) => {
                let mut take = script.key(self.keys.as_slice());
                take.arg(&self.owner).arg(*ttl);
                take.invoke_async::<u64>(connection).await? > 0
            }
            None => {
                let mut set = redis::cmd("SET");
                set.arg(&self.keys[0]).arg(&self.owner).arg("NX").arg("PX").arg(*ttl);
                set.query_async::<Option<String>>(connection).await?.is_some()
            }
        };
        match taken {
            true => Ok(None),
            false => Err(format!("Redis has {} already", self.keys[0]).into()),
        }
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let Connected { connection, scripts, .. } = &mut self.by;
        let keys = if scripts.0.is_some() { 2 } else { 1 };
        let mut give = scripts.1.key(&self.keys[..keys]);
        give.arg(&self.owner);
        match give.invoke_async::<u64>(connection).await? {
            1 => Ok(()),
            _ => Err(format!("Redis does not have {} any more", self.keys[0]).into()),
        }
    }
}
