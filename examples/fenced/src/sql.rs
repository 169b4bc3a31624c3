//! A table: the greatest token is stored beside the value, and the write compares it.

use distlock::FencingToken;
use sqlx::SqlitePool;

use crate::Failure;

/// `<=`, not `<`: a holder may write several times. The comparison and the write are one statement,
/// so no newer holder gets in between.
const WRITE: &str = "UPDATE stock SET left_over = $1, fence = $2 WHERE id = 1 AND fence <= $2";

/// The stock. The statement is the same on PostgreSQL and, with `?`, on MySQL.
pub struct Stock(SqlitePool);

impl Stock {
    pub async fn new() -> Result<Self, Failure> {
        // One connection: each connection to `:memory:` has its own database.
        let options = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
        let pool = options.connect("sqlite::memory:").await?;
        let table = "CREATE TABLE stock (id INTEGER PRIMARY KEY, left_over BIGINT, fence BIGINT)";
        sqlx::query(table).execute(&pool).await?;
        sqlx::query("INSERT INTO stock VALUES (1, 42, 0)").execute(&pool).await?;
        Ok(Self(pool))
    }

    /// Returns whether the value was written.
    pub async fn write(&self, token: FencingToken, left: i64) -> Result<bool, Failure> {
        // Tokens are below 2^63 on every store.
        let fence = i64::try_from(token.value())?;
        let written = sqlx::query(WRITE).bind(left).bind(fence).execute(&self.0).await?;
        Ok(written.rows_affected() == 1)
    }

    pub async fn left(&self) -> Result<i64, Failure> {
        Ok(sqlx::query_scalar("SELECT left_over FROM stock").fetch_one(&self.0).await?)
    }
}
