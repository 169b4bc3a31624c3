//! Two writes that belong together, a concurrent reader, and an error after a write.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::{Failure, Stage};

/// The observations of writes that belong together.
pub(crate) struct Seen {
    pub label: &'static str,
    pub reads: u64,
    /// Reads that saw only the first of two steps.
    pub halves: u64,
    /// Whether the writes before the error stay.
    pub stays: bool,
}

/// Reads until the writer has ended. Returns the number of reads, and of reads of odd numbers.
async fn read_beside<R: Future<Output = Result<i64, Failure>> + Send>(
    mut read: impl FnMut() -> R + Send,
    done: Arc<AtomicBool>,
) -> Result<(u64, u64), Failure> {
    let (mut reads, mut halves) = (0, 0);
    while !done.load(Relaxed) {
        halves += u64::from(read().await? % 2 != 0);
        reads += 1;
    }
    Ok((reads, halves))
}

/// A script. In a control run its commands are sent one by one.
#[cfg(feature = "redis")]
pub(crate) async fn in_redis(stage: &Stage) -> Result<Seen, Failure> {
    use redis::{Client, Script, cmd};

    use crate::keys::open_redis;

    const TWICE: &str = "redis.call('incr', KEYS[1]) return redis.call('incr', KEYS[1])";
    const FAILS: &str = "redis.call('set', KEYS[1], 'written') return redis.call('nosuch')";
    let client = Client::open(stage.shared().await?.url())?;
    let mut connection = open_redis(&client).await?;
    let reader = open_redis(&client).await?;
    let (key, other, apart) = (stage.name("number"), stage.name("other"), stage.is_swapped());
    cmd("SET").arg(&key).arg(0).query_async::<()>(&mut connection).await?;
    let done = Arc::new(AtomicBool::new(false));
    let read_key = key.clone();
    let read = move || {
        let (mut reader, key) = (reader.clone(), read_key.clone());
        async move { Ok(cmd("GET").arg(&key).query_async::<i64>(&mut reader).await?) }
    };
    let reading = tokio::spawn(read_beside(read, done.clone()));
    for _ in 0..stage.quick_or_full(500, 3000) {
        if apart {
            for _ in 0..2 {
                cmd("INCR").arg(&key).query_async::<i64>(&mut connection).await?;
            }
        } else {
            Script::new(TWICE).key(&key).invoke_async::<i64>(&mut connection).await?;
        }
    }
    done.store(true, Relaxed);
    let (reads, halves) = reading.await??;
    let failed = match apart {
        true => {
            cmd("SET").arg(&other).arg("written").query_async::<()>(&mut connection).await?;
            cmd("NOSUCH").query_async::<()>(&mut connection).await.is_err()
        }
        false => Script::new(FAILS).key(&other).invoke_async::<()>(&mut connection).await.is_err(),
    };
    failed.then_some(()).ok_or("what should fail does not")?;
    let left: Option<String> = cmd("GET").arg(&other).query_async(&mut connection).await?;
    let label = if apart { "commands one by one" } else { "Lua script" };
    Ok(Seen { label, reads, halves, stays: left.is_some() })
}

/// A transaction, rolled back at its error. In a control run it continues after a savepoint.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) async fn in_a_database(stage: &Stage) -> Result<Seen, Failure> {
    use tokio::sync::Mutex;

    use crate::{Store, bare::Sql};

    const TABLE: &str = "CREATE TABLE IF NOT EXISTS compare_script \
        (name VARCHAR(250) PRIMARY KEY, number BIGINT NOT NULL)";
    let url = stage.shared().await?.url();
    let url = if stage.store == Store::Sqlite { format!("{url}.script") } else { url };
    let mut sql = Sql::connect(stage.store, &url).await?;
    sql.execute(TABLE, &[]).await?;
    let reader = Arc::new(Mutex::new(Sql::connect(stage.store, &url).await?));
    let (row, other) = (stage.name("number"), stage.name("other"));
    let insert = "INSERT INTO compare_script VALUES (?, 0)";
    sql.execute(insert, &[row.as_str().into()]).await?;
    let done = Arc::new(AtomicBool::new(false));
    let read_row = row.clone();
    let select = "SELECT number FROM compare_script WHERE name = ?";
    let read = move || {
        let (reader, row) = (reader.clone(), read_row.clone());
        async move {
            let number = reader.lock().await.number(select, &[row.as_str().into()]).await?;
            Ok(number.ok_or("the row is gone")?)
        }
    };
    let reading = tokio::spawn(read_beside(read, done.clone()));
    for _ in 0..stage.quick_or_full(100, 1000) {
        sql.begin().await?;
        for _ in 0..2 {
            let update = "UPDATE compare_script SET number = number + 1 WHERE name = ?";
            sql.execute(update, &[row.as_str().into()]).await?;
        }
        sql.execute("COMMIT", &[]).await?;
    }
    done.store(true, Relaxed);
    let (reads, halves) = reading.await??;
    let goes_on = stage.is_swapped();
    sql.begin().await?;
    sql.execute(insert, &[other.as_str().into()]).await?;
    sql.execute("SAVEPOINT before_the_error", &[]).await?;
    let failed = sql.execute("INSERT INTO compare_nosuch VALUES (1)", &[]).await.is_err();
    failed.then_some(()).ok_or("what should fail does not")?;
    if goes_on {
        sql.execute("ROLLBACK TO SAVEPOINT before_the_error", &[]).await?;
        sql.execute("COMMIT", &[]).await?;
    } else {
        sql.execute("ROLLBACK", &[]).await?;
    }
    let stays = sql.number(select, &[other.as_str().into()]).await?.is_some();
    let label = match goes_on {
        true => "transaction that goes on behind a savepoint",
        false => "transaction, rolled back at its error",
    };
    Ok(Seen { label, reads, halves, stays })
}
