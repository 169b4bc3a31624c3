//! The token floor, with random sequences of grants, swaps of the store, restores from a backup and
//! raises: a fenced table refuses no valid write and accepts no stale one.
//!
//! Some sequences for each pair of stores. The name of a failure contains the seed. `FLOOR_SEED`
//! sets it.

#![cfg(all(
    feature = "sqlite",
    feature = "redis",
    feature = "etcd",
    feature = "zookeeper",
    feature = "postgres"
))]

mod place;
mod raise;
mod sequence;

use crate::{
    floor::{place::Place, sequence::Sequence},
    support::{Random, size},
};

async fn sequences(first: &str, second: &str) {
    let seed = std::env::var("FLOOR_SEED").map_or(12, |seed| seed.parse().expect("a number"));
    let mut places = [Place::open(first).await, Place::open(second).await];
    for number in 0..size(3, 20) {
        let part = format!("{first} {second} {number}");
        let random = Random::of(seed, &part);
        let mut sequence = Sequence::new(&mut places, random, format!("seed {seed}, {part}")).await;
        sequence.run().await;
    }
}

macro_rules! pairs {
    ($($test:ident: $first:literal $second:literal),+ $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            sequences($first, $second).await;
        }
    )+};
}

pairs!(
    sqlite_and_redis: "sqlite" "redis",
    sqlite_and_etcd: "sqlite" "etcd",
    sqlite_and_zookeeper: "sqlite" "zookeeper",
    sqlite_and_postgres: "sqlite" "postgres",
    redis_and_etcd: "redis" "etcd",
    redis_and_zookeeper: "redis" "zookeeper",
    redis_and_postgres: "redis" "postgres",
    etcd_and_zookeeper: "etcd" "zookeeper",
    etcd_and_postgres: "etcd" "postgres",
    zookeeper_and_postgres: "zookeeper" "postgres",
);
