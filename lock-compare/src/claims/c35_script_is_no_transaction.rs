//! C35: a Lua script is isolated, but what it wrote before an error stays.

use async_trait::async_trait;

use crate::{Claim, Experiment, Failure, Outcome, Stage};
#[cfg(feature = "redis")]
use crate::{Figure, Nature, Side, Store};

/// C35.
pub(crate) struct ScriptIsNoTransaction;

const CLAIM: Claim = Claim {
    number: 35,
    title: "A script is a transaction",
    claimed: "A Lua script in Redis is a transaction.",
    done: "Eight clients count up by a script at once; then a script writes a key and fails. In \
           the control the script checks before it writes.",
    measured: "Counts that are lost, and keys that a failed script leaves.",
    threshold: "Holds if no count is lost and nothing is left; differs if a key is left.",
};

#[async_trait]
impl Experiment for ScriptIsNoTransaction {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        #[cfg(feature = "redis")]
        if stage.store == Store::Redis {
            return on_redis(stage).await;
        }
        Ok(Outcome::cannot_be_asked(format!("{} runs no Lua scripts", stage.store)))
    }
}

#[cfg(feature = "redis")]
const COUNT: &str = "\
local now = tonumber(redis.call('get', KEYS[1]) or '0') redis.call('set', KEYS[1], now + 1)";
#[cfg(feature = "redis")]
const WRITES_FIRST: &str = "\
redis.call('set', KEYS[1], 'half') return redis.call('incr', KEYS[1])";
#[cfg(feature = "redis")]
const CHECKS_FIRST: &str = "\
if not tonumber('half') then return redis.error_reply('ERR not a number') end \
redis.call('set', KEYS[1], 'half') return redis.call('incr', KEYS[1])";
#[cfg(feature = "redis")]
const CLIENTS: usize = 8;

#[cfg(feature = "redis")]
async fn on_redis(stage: &Stage) -> Result<Outcome, Failure> {
    use redis::{Client, Script, cmd};

    let client = Client::open(stage.shared().await?.url())?;
    let (counter, half) = (stage.name("counter"), stage.name("half"));
    let rounds = stage.quick_or_full(50, 200);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut link, key) = (client.get_multiplexed_async_connection().await?, counter.clone());
        tasks.spawn(async move {
            let script = Script::new(COUNT);
            for _ in 0..rounds {
                script.key(&key).invoke_async::<()>(&mut link).await?;
            }
            Ok::<_, redis::RedisError>(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    let mut link = client.get_multiplexed_async_connection().await?;
    let counted: usize = cmd("GET").arg(&counter).query_async(&mut link).await?;
    let lost = CLIENTS * rounds - counted;
    let script = Script::new(stage.pick(WRITES_FIRST, CHECKS_FIRST));
    let reply: Result<i64, _> = script.key(&half).invoke_async(&mut link).await;
    let error = reply.err().ok_or("the script does not fail")?;
    let left: usize = cmd("EXISTS").arg(&half).query_async(&mut link).await?;
    cmd("DEL").arg(&counter).arg(&half).query_async::<()>(&mut link).await?;
    let happened = format!("{lost} of {} counts are lost, {left} keys are left", counted + lost);
    let side = Side::new("a Lua script", Nature::AsPrinted, left == 0, happened.clone())
        .evidence(format!("the script ends with: {error}"))
        .evidence(format!("EXISTS afterwards: {left}"));
    Ok(Outcome::holds_if(lost == 0 && left == 0, happened)
        .side(side)
        .figure(Figure::count("lost counts", lost as f64, ""))
        .figure(Figure::count("keys left by a failed script", left as f64, "keys")))
}
