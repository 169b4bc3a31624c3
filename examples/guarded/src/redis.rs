//! Redis: a script that compares the lock's key before it writes.

use distlock::{
    LockGuard,
    redis::{
        RedisLease,
        client::{Client, Script},
    },
};

use crate::Failure;

const WRITE: &str = "
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[2], ARGV[2])
    return 1";

pub async fn write(url: &str, guard: &LockGuard, stock: &str) -> Result<bool, Failure> {
    let lease = guard.lease_as::<RedisLease>().ok_or("not Redis's")?;
    let mut redis = Client::open(url)?.get_multiplexed_async_connection().await?;
    let script = Script::new(WRITE);
    let mut call = script.key(lease.key());
    call.key("guarded-stock-left").arg(lease.value()).arg(stock);
    let written: u8 = call.invoke_async(&mut redis).await?;
    Ok(written == 1)
}
