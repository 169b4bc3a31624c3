//! Redis: `SET NX PX`, and a script that compares and deletes. A second way has scripts that
//! touch as many keys as a lock with a queue and a fencing token.

use std::sync::Arc;

use distlock::redis::client::{
    Client, ConnectionInfo, IntoConnectionInfo, Script, aio::MultiplexedConnection, cmd,
    io::tcp::TcpSettings,
};
use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::{Load, Pair};

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Takes the key if no client waits, and counts.
const TAKE: &str = "if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end \
    if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end \
    local last = tonumber(redis.call('GET', KEYS[3]) or '0') \
    redis.call('SET', KEYS[3], string.format('%.0f', last + 1)) \
    return last + 1";

/// Gives the key back if no client waits.
const GIVE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
    if redis.call('EXISTS', KEYS[2]) == 1 then return 2 end \
    return redis.call('DEL', KEYS[1])";

async fn connect(address: &str) -> MultiplexedConnection {
    let info: ConnectionInfo =
        format!("redis://{address}").into_connection_info().expect("an address");
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let client = Client::open(info).expect("a client");
    client.get_multiplexed_async_connection().await.expect("redis")
}

/// `SET NX PX`, and a script that compares and deletes.
pub async fn pair(address: &str) -> Arc<dyn Load> {
    let connection = connect(address).await;
    let script = Arc::new(Script::new(COMPARE_AND_DELETE));
    Arc::new(move |task: usize| {
        let (connection, script, key) =
            (connection.clone(), script.clone(), format!("floor-{task}"));
        let pair: Pair = Box::new(move || {
            let (mut connection, script, key) = (connection.clone(), script.clone(), key.clone());
            Box::pin(async move {
                let mut set = cmd("SET");
                set.arg(&key).arg("token").arg("NX").arg("PX").arg(15_000);
                let taken: Option<String> = set.query_async(&mut connection).await.expect("SET");
                assert!(taken.is_some());
                let deleted: u32 = script
                    .key(&key)
                    .arg("token")
                    .invoke_async(&mut connection)
                    .await
                    .expect("a script");
                assert_eq!(deleted, 1);
            })
        });
        pair
    })
}

/// Scripts that touch as many keys as distlock's.
pub async fn scripts(address: &str) -> Arc<dyn Load> {
    let connection = connect(address).await;
    let scripts = Arc::new((Script::new(TAKE), Script::new(GIVE)));
    Arc::new(move |task: usize| {
        let keys = Arc::new(["", "-queue", "-fence"].map(|part| format!("floors-{task}{part}")));
        let (connection, scripts) = (connection.clone(), scripts.clone());
        let pair: Pair = Box::new(move || {
            let (mut connection, scripts, keys) =
                (connection.clone(), scripts.clone(), keys.clone());
            Box::pin(async move {
                let mut take = scripts.0.key(keys.as_slice());
                let token: u64 = take
                    .arg("token")
                    .arg(15_000)
                    .invoke_async(&mut connection)
                    .await
                    .expect("take");
                assert!(token > 0);
                let mut give = scripts.1.key(&keys[..2]);
                let deleted: u32 =
                    give.arg("token").invoke_async(&mut connection).await.expect("give");
                assert_eq!(deleted, 1);
            })
        });
        pair
    })
}

/// The first way on several servers at the same time. It goes on as soon as most have agreed, as
/// Redlock does.
pub async fn majority(addresses: &[String]) -> Arc<dyn Load> {
    let mut servers = Vec::new();
    for address in addresses {
        servers.push(connect(address).await);
    }
    let script = Arc::new(Script::new(COMPARE_AND_DELETE));
    Arc::new(move |task: usize| {
        let voter = |connection: &MultiplexedConnection| Voter {
            connection: connection.clone(),
            script: script.clone(),
            key: format!("floor-{task}").into(),
        };
        let voters: Arc<[Voter]> = servers.iter().map(voter).collect();
        let pair: Pair = Box::new(move || {
            let voters = voters.clone();
            Box::pin(async move {
                most(voters.iter().map(|voter| voter.clone().take())).await;
                most(voters.iter().map(|voter| voter.clone().give())).await;
            })
        });
        pair
    })
}

/// Waits for most of the answers. The other requests are sent, too.
async fn most(requests: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>) {
    let mut open: FuturesUnordered<_> = requests.collect();
    for _ in 0..=open.len() / 2 {
        open.next().await;
    }
    tokio::spawn(open.for_each(async |()| {}));
}

/// One of several servers.
#[derive(Clone)]
struct Voter {
    connection: MultiplexedConnection,
    script: Arc<Script>,
    key: Arc<str>,
}

impl Voter {
    async fn take(mut self) {
        let mut set = cmd("SET");
        set.arg(&*self.key).arg("token").arg("NX").arg("PX").arg(15_000);
        let taken: Option<String> = set.query_async(&mut self.connection).await.expect("SET");
        assert!(taken.is_some());
    }

    async fn give(mut self) {
        let mut delete = self.script.key(&*self.key);
        let deleted: u32 =
            delete.arg("token").invoke_async(&mut self.connection).await.expect("a script");
        assert_eq!(deleted, 1);
    }
}
