//! Locks from a pool of the caller's: its login, its TLS, its other options.

use lock_core::{Error, Locks};
use lock_sql::{
    Dialect, SqlConfig, SqlLock,
    client::{
        self, MySqlPool, PgPool,
        mysql::{MySqlConnectOptions, MySqlPoolOptions},
        postgres::{PgConnectOptions, PgPoolOptions},
    },
};

use crate::{
    servers::{Database, locks, on_both},
    support::{
        contend::{acquire, contend},
        eventually,
    },
};

on_both!(
    locks_connect_with_the_options_of_a_pool,
    the_end_of_a_pool_does_not_affect_the_locks,
    a_new_password_of_a_pool_is_used
);

/// A pool of one connection.
enum Pool {
    MySql(MySqlPool),
    Postgres(PgPool),
}

impl Pool {
    async fn connect(database: &Database) -> Self {
        let url = database.url();
        match database {
            Database::MariaDb(_) => {
                let options = MySqlPoolOptions::new().max_connections(1);
                Self::MySql(options.connect(&url).await.unwrap())
            }
            Database::Postgres(_) => {
                let options = PgPoolOptions::new().max_connections(1);
                Self::Postgres(options.connect(&url).await.unwrap())
            }
        }
    }

    fn config(&self) -> SqlConfig {
        match self {
            Self::MySql(pool) => SqlConfig::from_client(pool),
            Self::Postgres(pool) => SqlConfig::from_client(pool),
        }
    }

    async fn driver(&self) -> SqlLock {
        match self {
            Self::MySql(pool) => SqlLock::with_client(pool).await.unwrap(),
            Self::Postgres(pool) => SqlLock::with_client(pool).await.unwrap(),
        }
    }

    async fn locks(&self) -> Locks {
        Locks::new(self.driver().await)
    }

    /// The program's own work with its pool.
    async fn works(&self) {
        match self {
            Self::MySql(pool) => {
                client::query("DO 1").execute(pool).await.unwrap();
            }
            Self::Postgres(pool) => {
                client::query("SELECT 1").execute(pool).await.unwrap();
            }
        }
    }

    async fn close(&self) {
        match self {
            Self::MySql(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }

    fn set_password(&self, password: &str) {
        match self {
            Self::MySql(pool) => {
                let options: MySqlConnectOptions = (*pool.connect_options()).clone();
                pool.set_connect_options(options.password(password));
            }
            Self::Postgres(pool) => {
                let options: PgConnectOptions = (*pool.connect_options()).clone();
                pool.set_connect_options(options.password(password));
            }
        }
    }
}

async fn locks_connect_with_the_options_of_a_pool(dialect: Dialect) {
    let database = Database::start(dialect).await;
    let pool = Pool::connect(&database).await;
    pool.works().await;
    let own = pool.locks().await;
    let other = locks(&database.url()).await;
    // The pool has no connection to spare.
    match &pool {
        Pool::MySql(pool) => {
            let busy = pool.acquire().await.unwrap();
            contend(&own, &other).await;
            drop(busy);
        }
        Pool::Postgres(pool) => {
            let busy = pool.acquire().await.unwrap();
            contend(&own, &other).await;
            drop(busy);
        }
    }
    pool.works().await;
    own.close().await.unwrap();
    pool.works().await;
    let shown = format!("{:?}", pool.config());
    let (_, login) =
        database.url().split_once("lab:").map(|(a, b)| (a.len(), b.to_owned())).unwrap();
    assert!(!shown.contains(&login[..32]), "{shown}");
}

async fn the_end_of_a_pool_does_not_affect_the_locks(dialect: Dialect) {
    let database = Database::start(dialect).await;
    let pool = Pool::connect(&database).await;
    let own = pool.locks().await;
    let held = acquire(&own, "held").await;
    pool.close().await;
    held.renew().await.unwrap();
    held.release().await.unwrap();
    contend(&own, &locks(&database.url()).await).await;
}

/// Ends the user's connections, and sets another password.
async fn change_password(database: &Database, password: &str) {
    database.spoil();
    match database {
        Database::MariaDb(server) => {
            server.sql(&format!("SET PASSWORD = PASSWORD('{password}')")).await.unwrap();
            server.sql_as_admin("KILL USER lab").await.unwrap();
        }
        Database::Postgres(server) => {
            let set = format!(
                "ALTER USER lab PASSWORD '{password}'; SELECT pg_terminate_backend(pid) \
                 FROM pg_stat_activity WHERE usename = 'lab'"
            );
            server.sql_as_admin(&set).await.unwrap();
        }
    }
}

async fn a_new_password_of_a_pool_is_used(dialect: Dialect) {
    let database = Database::start(dialect).await;
    let pool = Pool::connect(&database).await;
    let own = pool.locks().await;
    acquire(&own, "orders").await.release().await.unwrap();
    change_password(&database, "another").await;
    let lock = own.lock("orders").unwrap();
    eventually("the old password is refused", async || {
        matches!(lock.try_acquire().await, Err(Error::Denied { .. }))
    })
    .await;
    pool.set_password("another");
    lock.acquire().await.unwrap().release().await.unwrap();
    pool.works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_of_a_pool_of_postgres_counts() {
    let database = Database::start(Dialect::Postgres).await;
    database.sql("CREATE SCHEMA app").await;
    let options: PgConnectOptions = database.url().parse().unwrap();
    let options = options.options([("search_path", "app")]).application_name("shop");
    let pool = PgPool::connect_with(options).await.unwrap();
    let own = Locks::new(SqlLock::with_client(&pool).await.unwrap());
    let held = acquire(&own, "orders").await;
    let count = database.sql("SELECT count(*) FROM app.distlock_v1_entries").await;
    assert_eq!(count.trim(), "1");
    let names = "SELECT count(DISTINCT application_name) FROM pg_stat_activity \
                 WHERE query LIKE '%distlock%' AND application_name = 'shop'";
    assert_eq!(database.sql(names).await.trim(), "1");
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_pool_of_mysql_without_a_database_is_refused() {
    let options = MySqlConnectOptions::new().host("127.0.0.1");
    let pool = MySqlPoolOptions::new().connect_lazy_with(options);
    let refused = SqlLock::with_client(&pool).await.unwrap_err();
    assert!(matches!(refused, Error::InvalidOption { .. }), "{refused:?}");
}
