//! The documents' lock in MySQL (claim C20): a row with a unique key is a mutex, but a crashed
//! holder blocks the others for ever. The properties show both. The suite runs them on our own lock
//! in the same database, which keeps all of them.
#![cfg(feature = "mysql")]

mod lock;

use std::time::Duration;

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{self, Check, Client, Failure, Harness, Outcome},
};
use lock_lab::{Lent, MariaDb};
use sqlx::MySqlPool;

use self::lock::Naive;
use crate::support::servers::{self, Secured};

struct Database(Lent<Secured<MariaDb>>);

#[async_trait]
impl Harness for Database {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let naive = Naive::connect(&self.0.url()).await?;
        Ok(Box::new(Connected { pool: naive.pool.clone(), locks: Locks::new(naive) }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn restart(&self) -> Result<(), Failure> {
        Err("not asked for here".into())
    }

    async fn delete(&self, _name: &LockName) -> Result<(), Failure> {
        Err("not asked for here".into())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let rows = self.0.server.sql("SELECT owner FROM naive").await?;
        Ok(rows.lines().map(str::to_owned).collect())
    }
}

struct Connected {
    pool: MySqlPool,
    locks: Locks,
}

#[async_trait]
impl Client for Connected {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.pool.close().await;
        Ok(())
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.pool.close().await;
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.pool.close().await;
        Ok(())
    }
}

fn check(property: &str, name: &str) -> Check {
    let property = properties::all().iter().find(|one| one.name == property);
    let mut checks = property.expect("a property").checks.iter();
    *checks.find(|check| check.name == name).expect("a check")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_unique_key_is_a_mutex() {
    let database = Database(servers::mariadb(false).await.unwrap());
    for (property, name) in [("mutual_exclusion", "contention"), ("liveness", "holder_dropped")] {
        let outcome = check(property, name).run(&database).await;
        assert_eq!(outcome.unwrap_or_else(|failure| panic!("{failure}")), Outcome::Kept);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_holder_blocks_the_others_for_ever() {
    let database = Database(servers::mariadb(false).await.unwrap());
    for name in ["holder_crashed", "holder_cut_off"] {
        let failure = check("liveness", name).run(&database).await.unwrap_err().to_string();
        assert!(failure.contains("a grant after the holder was gone"), "{failure}");
    }
}
