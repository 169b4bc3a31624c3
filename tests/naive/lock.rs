//! The documents' lock: a row with a unique key. The release checks the owner in a transaction.
//! There is no expiry.

use std::time::Duration;

use async_trait::async_trait;
use lock_core::{
    Attempt, Clock, DistributedLock, Effect, Entry, Error, FencingToken, Guarantees, Holder,
    Instant, Lease, LockName, Request, Result, Validity, Wait,
};
use sqlx::{MySql, MySqlPool};
use uuid::Uuid;

const STORE: &str = "naive";
/// Waiters poll, because they get no notification.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Naive {
    pub pool: MySqlPool,
    guarantees: Guarantees,
}

impl Naive {
    pub async fn connect(url: &str) -> sqlx::Result<Self> {
        let pool = MySqlPool::connect(url).await?;
        let table =
            "CREATE TABLE IF NOT EXISTS naive (name VARBINARY(512) PRIMARY KEY, owner VARCHAR(36))";
        sqlx::query(table).execute(&pool).await?;
        Ok(Self { pool, guarantees: Guarantees::least(STORE) })
    }

    /// Inserts the row. Returns whether it is ours now.
    async fn insert(&self, name: &LockName, owner: Uuid) -> Result<bool> {
        let insert = sqlx::query("INSERT INTO naive (name, owner) VALUES (?, ?)")
            .bind(name.as_str().as_bytes())
            .bind(owner.to_string());
        match insert.execute(&self.pool).await {
            Ok(_) => Ok(true),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
            // A deadlock inside InnoDB, between the waiters for the row and the client that deletes
            // it.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40001") => {
                Ok(false)
            }
            Err(error) => Err(unavailable("acquire", error)),
        }
    }
}

fn unavailable(op: &'static str, error: sqlx::Error) -> Error {
    Error::Unavailable { store: STORE, op, effect: Effect::Unknown, source: error.into() }
}

#[async_trait]
impl DistributedLock for Naive {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Boot
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let Request { name, wait, .. } = request;
        while !self.insert(&name, attempt.id()).await? {
            if wait == Wait::Try || attempt.is_cancelled() {
                return Err(Error::Contended { name });
            }
            tokio::time::sleep(PAUSE).await;
        }
        let validity = Validity::new(&name, Instant::NEVER);
        let (pool, owner) = (self.pool.clone(), attempt.id().to_string());
        Ok(Box::new(Row { pool, name, owner, validity }))
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        let owner: Option<String> = sqlx::query_scalar("SELECT owner FROM naive WHERE name = ?")
            .bind(name.as_str().as_bytes())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| unavailable("inspect", error))?;
        let entry = |owner: String| Entry::new(owner.parse().ok(), Holder::default()).holding();
        Ok(owner.map(entry).into_iter().collect())
    }

    async fn names(&self, _prefix: &str) -> Result<Vec<LockName>> {
        Err(Error::Unsupported { store: STORE, what: "list names".to_owned() })
    }

    async fn revoke(&self, _name: &LockName, _attempt: Uuid) -> Result<bool> {
        Err(Error::Unsupported { store: STORE, what: "revoke".to_owned() })
    }

    async fn close(&self) -> Result<()> {
        self.pool.close().await;
        Ok(())
    }
}

#[derive(Debug)]
struct Row {
    pool: MySqlPool,
    name: LockName,
    owner: String,
    validity: Validity,
}

impl Row {
    async fn delete(&self) -> sqlx::Result<()> {
        let mut transaction: sqlx::Transaction<'_, MySql> = self.pool.begin().await?;
        let owner: Option<String> =
            sqlx::query_scalar("SELECT owner FROM naive WHERE name = ? FOR UPDATE")
                .bind(self.name.as_str().as_bytes())
                .fetch_optional(&mut *transaction)
                .await?;
        if owner.as_ref() == Some(&self.owner) {
            sqlx::query("DELETE FROM naive WHERE name = ?")
                .bind(self.name.as_str().as_bytes())
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await
    }
}

#[async_trait]
impl Lease for Row {
    fn token(&self) -> FencingToken {
        FencingToken::new(0)
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn renew(&self) -> Result<()> {
        Ok(())
    }

    async fn release(&self) -> Result<()> {
        loop {
            match self.delete().await {
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40001") => {}
                deleted => return deleted.map_err(|error| unavailable("release", error)),
            }
        }
    }
}
