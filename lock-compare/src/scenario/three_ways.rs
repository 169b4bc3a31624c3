//! The three ways to lock in a database, compared with Redis and distlock.

use std::{sync::Arc, time::Duration};

use lock_lab::{Proxy, Redis};
use tokio::{sync::Mutex, time::sleep};

use crate::{
    Distlock, Failure, Figure, Give, Nature, Outcome, Printed, Side, Stage, Store, Take,
    bare::Sql,
    keys::RedisKeys,
    rounds::{Contender, FAR, Ratio, Times, Work, durable, in_turns, plot, verdict, words},
};

const SLOWER: f64 = 2.0;
const FASTER: f64 = 6.0;
const ROW: &str = "the row";

#[derive(Clone, Copy, Debug)]
enum Way {
    UniqueKey,
    Pessimistic,
    Optimistic,
}

impl Way {
    const ALL: [Self; 3] = [Self::UniqueKey, Self::Pessimistic, Self::Optimistic];

    fn label(self, store: Store) -> &'static str {
        match self {
            Self::UniqueKey => "unique key: INSERT, DELETE",
            Self::Pessimistic if store == Store::Sqlite => {
                "the whole file: BEGIN IMMEDIATE, COMMIT"
            }
            Self::Pessimistic => "row lock: SELECT .. FOR UPDATE, COMMIT",
            Self::Optimistic => "version: SELECT, UPDATE .. WHERE version",
        }
    }

    /// Number of its statements. Each waits for its reply.
    fn statements(self) -> u32 {
        if matches!(self, Self::Pessimistic) { 3 } else { 2 }
    }

    async fn lock(self, sql: &mut Sql, store: Store) -> Result<(), Failure> {
        let select = "SELECT version FROM compare_rows WHERE name = ?";
        match self {
            Self::UniqueKey => {
                sql.execute("INSERT INTO compare_names VALUES (?)", &[ROW.into()]).await?;
                sql.execute("DELETE FROM compare_names WHERE name = ?", &[ROW.into()]).await?;
            }
            Self::Pessimistic => {
                sql.begin().await?;
                // SQLite has no row locks. A transaction that writes locks the whole file.
                let keep = if store == Store::Sqlite { "" } else { " FOR UPDATE" };
                let select = format!("{select}{keep}");
                sql.number(&select, &[ROW.into()]).await?.ok_or("the row is gone")?;
                sql.execute("COMMIT", &[]).await?;
            }
            Self::Optimistic => {
                let version = sql.number(select, &[ROW.into()]).await?.ok_or("the row is gone")?;
                let update = "UPDATE compare_rows SET version = version + 1 \
                              WHERE name = ? AND version = ?";
                let changed = sql.execute(update, &[ROW.into(), version.into()]).await?;
                (changed == 1).then_some(()).ok_or("somebody else was faster")?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn three_ways(stage: &Stage) -> Result<Outcome, Failure> {
    let ground = durable(stage.store).await?;
    let redis = Redis::builder().appendonly(false).start().await?;
    let proxy = Proxy::start(redis.addr()).await?;
    let is_far = stage.is_swapped();
    // No proxy can stand between a client and a file.
    let away = (is_far && stage.store.is_embedded()).then_some(FAR);
    let keys = RedisKeys::new(&if is_far { redis.url_via(&proxy) } else { redis.url() })?;
    let usual = Printed::new(Arc::new(keys), Take::OneStep, Give::CompareAndDel);
    let mut contenders = vec![
        Contender::of("Redis: SET NX PX, script", &usual, stage.name("redis"), None).await?,
        Contender::of("distlock", &Distlock::new(ground.url()), stage.name("distlock"), None)
            .await?,
    ];
    let url = match stage.store {
        Store::Sqlite => format!("{}.rows", ground.url()),
        _ => ground.url(),
    };
    make_tables(&mut Sql::connect(stage.store, &url).await?).await?;
    for way in Way::ALL {
        let sql = Arc::new(Mutex::new(Sql::connect(stage.store, &url).await?));
        let work = work(way, sql, stage.store, away);
        contenders.push(Contender { name: way.label(stage.store).into(), work });
    }
    if is_far && !stage.store.is_embedded() {
        proxy.delay(FAR);
    }
    let (rounds, times) = stage.quick_or_full((12, 8), (30, 20));
    Ok(judge(stage, &in_turns(&contenders, rounds, times).await?))
}

async fn make_tables(sql: &mut Sql) -> Result<(), Failure> {
    let names = "CREATE TABLE compare_names (name VARCHAR(250) PRIMARY KEY)";
    let rows = "CREATE TABLE compare_rows (name VARCHAR(250) PRIMARY KEY, version BIGINT NOT NULL)";
    sql.execute(names, &[]).await?;
    sql.execute(rows, &[]).await?;
    sql.execute("INSERT INTO compare_rows VALUES (?, 0)", &[ROW.into()]).await?;
    Ok(())
}

fn work(way: Way, sql: Arc<Mutex<Sql>>, store: Store, away: Option<Duration>) -> Work {
    Box::new(move || {
        let sql = sql.clone();
        Box::pin(async move {
            if let Some(away) = away {
                sleep(away).await;
            }
            way.lock(&mut *sql.lock().await, store).await
        })
    })
}

/// The first entry is Redis, the second is distlock.
fn judge(stage: &Stage, times: &[Times]) -> Outcome {
    let (redis, distlock, ways) = (&times[0], &times[1], &times[2..]);
    let to = |other: &Times| -> Vec<Ratio> {
        ways.iter().map(|way| way.ratio_to(other, stage.seed)).collect()
    };
    let (to_redis, to_distlock) = (to(redis), to(distlock));
    let (median, words) = (redis.median(), words(ways, &to_redis));
    let sentence = format!("Redis takes {median:.2} ms for a lock and unlock; {words}");
    let verdict = verdict(&to_redis, SLOWER, FASTER);
    let mut outcome = Outcome::new(verdict, sentence);
    for ((way, redis), distlock) in ways.iter().zip(to_redis).zip(to_distlock) {
        let name = |other| format!("{} / {other}", way.name);
        outcome = outcome
            .figure(Figure::ratio(name("Redis"), redis.value, redis.interval))
            .figure(Figure::ratio(name("distlock"), distlock.value, distlock.interval));
    }
    for (way, one) in Way::ALL.into_iter().zip(ways) {
        let happened = format!("{:.2} ms, {} statements", one.median(), way.statements());
        outcome = outcome.side(Side::new(&one.name, Nature::AsPrinted, true, happened));
    }
    let took = |times: &Times| format!("{:.2} ms", times.median());
    let title = format!("Three ways to lock on {}", stage.store);
    outcome
        .side(Side::new(&redis.name, Nature::AsPrinted, true, took(redis)))
        .side(Side::new(&distlock.name, Nature::Distlock, true, took(distlock)))
        .plot(plot(title, times))
}
