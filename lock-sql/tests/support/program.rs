//! A program's own transactions on a server.

use lock_core::{Held, Result};
use lock_sql::{
    CommitHeld, Dialect, GivenTransaction,
    client::{
        AssertSqlSafe, MySql, MySqlPool, PgPool, Postgres, Transaction, mysql::MySqlPoolOptions,
        postgres::PgPoolOptions, raw_sql,
    },
};

/// A program with a table `numbers`.
pub enum Program {
    MySql(MySqlPool),
    Postgres(PgPool),
}

/// An open transaction.
pub enum Open {
    MySql(Transaction<'static, MySql>),
    Postgres(Transaction<'static, Postgres>),
}

impl Program {
    pub async fn connect(url: &str, connections: u32) -> Self {
        match Dialect::of_scheme(url.split(':').next().unwrap()).unwrap() {
            Dialect::Postgres => {
                let options = PgPoolOptions::new().max_connections(connections);
                Self::Postgres(options.connect(url).await.unwrap())
            }
            _ => {
                let options = MySqlPoolOptions::new().max_connections(connections);
                Self::MySql(options.connect(url).await.unwrap())
            }
        }
    }

    /// Runs statements. Returns the number of rows.
    pub async fn run(&self, sql: &str) -> usize {
        let sql = raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::MySql(pool) => sql.fetch_all(pool).await.unwrap().len(),
            Self::Postgres(pool) => sql.fetch_all(pool).await.unwrap().len(),
        }
    }

    /// Begins a transaction, and inserts a number.
    pub async fn open(&self, number: i64) -> Open {
        let insert = raw_sql(AssertSqlSafe(format!("INSERT INTO numbers VALUES ({number})")));
        match self {
            Self::MySql(pool) => {
                let mut open = pool.begin().await.unwrap();
                insert.execute(&mut *open).await.unwrap();
                Open::MySql(open)
            }
            Self::Postgres(pool) => {
                let mut open = pool.begin().await.unwrap();
                insert.execute(&mut *open).await.unwrap();
                Open::Postgres(open)
            }
        }
    }

    /// Inserts a number by a transaction that is open `meanwhile`, and is committed if the lock is
    /// held.
    pub async fn insert(
        &self,
        number: i64,
        held: &Held,
        meanwhile: impl Future<Output = ()>,
    ) -> Result<()> {
        let open = self.open(number).await;
        meanwhile.await;
        held.commit(open).await
    }
}

impl Open {
    /// Commits without a look at the lock.
    pub async fn commit(self) {
        match self {
            Self::MySql(open) => open.commit().await.unwrap(),
            Self::Postgres(open) => open.commit().await.unwrap(),
        }
    }
}

impl From<Open> for GivenTransaction<'_> {
    fn from(open: Open) -> Self {
        match open {
            Open::MySql(open) => open.into(),
            Open::Postgres(open) => open.into(),
        }
    }
}
