//! The databases, through their own client library.

macro_rules! database {
    ($connection:ident, $name:literal) => {
        use sqlx::{Connection, $connection as Driver};

        use crate::pages::{Program, Text, Value};

        pub struct Own(Driver);

        impl Own {
            async fn connect(url: &str) -> Self {
                Self(Driver::connect(url).await.unwrap())
            }
        }

        impl Program for Own {
            const NAME: &'static str = $name;

            async fn change(&mut self, sql: Text, values: &[Value]) -> u64 {
                let query =
                    values.iter().fold(sqlx::query(sql.safe()), |query, value| match value {
                        Value::Text(text) => query.bind(*text),
                        Value::Number(number) => query.bind(*number),
                    });
                query.execute(&mut self.0).await.unwrap().rows_affected()
            }

            async fn finds(&mut self, sql: Text, values: &[Value]) -> bool {
                let query =
                    values.iter().fold(sqlx::query(sql.safe()), |query, value| match value {
                        Value::Text(text) => query.bind(*text),
                        Value::Number(number) => query.bind(*number),
                    });
                query.fetch_optional(&mut self.0).await.unwrap().is_some()
            }

            async fn number(&mut self, sql: Text, values: &[Value]) -> i64 {
                let query = sqlx::query_scalar::<_, i64>(sql.safe());
                let query = values.iter().fold(query, |query, value| match value {
                    Value::Text(text) => query.bind(*text),
                    Value::Number(number) => query.bind(*number),
                });
                query.fetch_one(&mut self.0).await.unwrap()
            }

            async fn say(&mut self, sql: &'static str) {
                sqlx::raw_sql(sql).execute(&mut self.0).await.unwrap();
            }
        }
    };
}

#[cfg(feature = "postgres")]
mod postgres {
    database!(PgConnection, "PostgreSQL");

    #[tokio::test]
    async fn the_page_is_right() {
        let server = crate::support::start("postgres").await;
        let id = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY";
        let locks = crate::support::connect(&server.url()).await;
        crate::pages::all(id, &locks, async || Own::connect(&server.url()).await).await;
    }
}

#[cfg(feature = "mysql")]
mod mariadb {
    database!(MySqlConnection, "MySQL");

    #[tokio::test]
    async fn the_page_is_right() {
        let server = crate::support::start("mysql").await;
        let id = "BIGINT AUTO_INCREMENT PRIMARY KEY";
        let locks = crate::support::connect(&server.url()).await;
        crate::pages::all(id, &locks, async || Own::connect(&server.url()).await).await;
    }
}

mod sqlite {
    use distlock::{Error, Locks, StoreUrl};
    use lock_memory::{MemoryConfig, MemoryLock};
    use lock_sql::{CommitHeld, SqlConfig, SqlLock};

    database!(SqliteConnection, "SQLite");

    #[tokio::test]
    async fn the_page_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}/shop.db?mode=rwc", folder.path().display());
        let id = "INTEGER PRIMARY KEY AUTOINCREMENT";
        let path = folder.path().join("shop.db");
        let driver = SqlLock::connect(SqlConfig::file(Some(path))).await.unwrap();
        crate::pages::all(id, &Locks::new(driver), async || Own::connect(&url).await).await;
    }

    #[tokio::test]
    async fn a_lock_of_another_store_commits_nothing() {
        let url = StoreUrl::parse("memory:elsewhere").unwrap();
        let driver = MemoryLock::connect(MemoryConfig::from_url(&url).unwrap()).await.unwrap();
        let guard = Locks::new(driver).lock("shop").unwrap().acquire().await.unwrap();
        let mut shop = Driver::connect("sqlite::memory:").await.unwrap();
        let mut open = shop.begin().await.unwrap();
        sqlx::query("CREATE TABLE stock (n BIGINT)").execute(&mut *open).await.unwrap();
        let refused = guard.commit(open).await.unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused:?}");
        let tables = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM sqlite_master");
        assert_eq!(tables.fetch_one(&mut shop).await.unwrap(), 0);
    }
}
