//! Rows as keys, through the bare client. The name is a unique key, and a column has the expiry.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::{
    Failure, KeySpace, Keys, Nature, Store,
    bare::{Dialect, Sql, SqlArg},
};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS compare_keys \
    (name VARCHAR(250) PRIMARY KEY, value VARCHAR(250) NOT NULL, ends BIGINT)";

#[derive(Clone, Debug)]
pub(crate) struct SqlKeys {
    store: Store,
    url: Arc<str>,
}

impl SqlKeys {
    /// Keys of the database at this URL. Creates the table.
    pub(crate) async fn new(store: Store, url: &str) -> Result<Self, Failure> {
        let mut sql = Sql::connect(store, url).await?;
        if sql.execute(TABLE, &[]).await.is_err() {
            // PostgreSQL may refuse the second of two concurrent creations.
            sql.execute(TABLE, &[]).await?;
        }
        Ok(Self { store, url: url.into() })
    }
}

#[async_trait]
impl KeySpace for SqlKeys {
    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        let sql = Mutex::new(Sql::connect(self.store, &self.url).await?);
        Ok(Arc::new(Connected { sql, dialect: Dialect::of(self.store) }))
    }
}

struct Connected {
    sql: Mutex<Sql>,
    dialect: Dialect,
}

fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

impl Connected {
    async fn execute(&self, text: &str, args: &[SqlArg]) -> Result<u64, Failure> {
        loop {
            match self.sql.lock().await.execute(text, args).await {
                Err(error) if error.is_deadlock() => {}
                done => return Ok(done?),
            }
        }
    }

    /// Inserts the row. Returns whether it is ours now.
    async fn insert(&self, key: &str, value: &str, ends: &str) -> Result<bool, Failure> {
        let text = format!("INSERT INTO compare_keys VALUES (?, ?, {ends})");
        let args = [key.into(), value.into()];
        match self.sql.lock().await.execute(&text, &args).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_taken() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Keys for Connected {
    async fn set_nx(&self, key: &str, value: &str, ttl: Option<Duration>) -> Result<bool, Failure> {
        let Some(ttl) = ttl else { return self.insert(key, value, "NULL").await };
        let clock = self.dialect.clock;
        let over = format!("DELETE FROM compare_keys WHERE name = ? AND ends <= {clock}");
        self.execute(&over, &[key.into()]).await?;
        self.insert(key, value, &format!("{clock} + {}", millis(ttl))).await
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        self.del(key, None).await?;
        self.insert(key, value, "NULL").await?;
        Ok(())
    }

    async fn expire(&self, key: &str, ttl: Duration, of: Option<&str>) -> Result<bool, Failure> {
        let (clock, millis) = (self.dialect.clock, millis(ttl));
        let set = format!("UPDATE compare_keys SET ends = {clock} + {millis} WHERE name = ?");
        let Some(value) = of else { return Ok(self.execute(&set, &[key.into()]).await? > 0) };
        let alive = format!("{set} AND value = ? AND ends > {clock}");
        Ok(self.execute(&alive, &[key.into(), value.into()]).await? > 0)
    }

    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure> {
        let clock = self.dialect.clock;
        let text = format!(
            "SELECT coalesce(ends - {clock}, -1) FROM compare_keys WHERE name = ? \
             AND (ends IS NULL OR ends > {clock})"
        );
        let left = self.sql.lock().await.number(&text, &[key.into()]).await?;
        Ok(left.map(|left| u64::try_from(left).ok().map(Duration::from_millis)))
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        let clock = self.dialect.clock;
        let text = format!(
            "SELECT value FROM compare_keys WHERE name = ? AND (ends IS NULL OR ends > {clock})"
        );
        Ok(self.sql.lock().await.string(&text, &[key.into()]).await?)
    }

    async fn del(&self, key: &str, of: Option<&str>) -> Result<bool, Failure> {
        let del = "DELETE FROM compare_keys WHERE name = ?";
        let Some(value) = of else { return Ok(self.execute(del, &[key.into()]).await? > 0) };
        let same = format!("{del} AND value = ?");
        Ok(self.execute(&same, &[key.into(), value.into()]).await? > 0)
    }

    /// Counts down if the condition permits it. Returns the new number.
    async fn decr(&self, key: &str, unless_empty: bool) -> Result<Option<i64>, Failure> {
        let Dialect { int, text, .. } = self.dialect;
        let condition = if unless_empty { "> 0" } else { "IS NOT NULL" };
        let update = format!(
            "UPDATE compare_keys SET value = CAST(CAST(value AS {int}) - 1 AS {text}) \
             WHERE name = ? AND CAST(value AS {int}) {condition}"
        );
        let left = format!("SELECT CAST(value AS {int}) FROM compare_keys WHERE name = ?");
        let mut sql = self.sql.lock().await;
        sql.begin().await?;
        let changed = sql.execute(&update, &[key.into()]).await?;
        let left = sql.number(&left, &[key.into()]).await?;
        sql.execute("COMMIT", &[]).await?;
        Ok(left.filter(|_| changed > 0))
    }
}
