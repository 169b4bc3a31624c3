//! Mixed load with random faults, on every store. The test records the clients' actions and
//! beliefs, and checks them afterwards.
//!
//! The faults of a run come from a seed, which is printed first. `DISTLOCK_SEED` replays the faults
//! of a seed. `DISTLOCK_CHAOS` sets the seconds of faults and load of a run (20). A run that breaks
//! a promise leaves its history in `target/chaos/STORE-SEED.jsonl`.
#![cfg_attr(
    not(all(
        feature = "sqlite",
        feature = "etcd",
        feature = "redis",
        feature = "zookeeper",
        feature = "postgres",
        feature = "mysql"
    )),
    allow(dead_code, unused_imports, unused_mut, reason = "each store uses its part")
)]

mod cluster;
mod file;
pub mod guest;
mod load;
mod naive;
mod plan;
mod run;
mod server;
mod stage;
mod stores;

use std::{env, time::Duration};

use libtest_mimic::Trial;
use lock_lab::network_trial;

use self::{
    run::{Order, Outcome, run},
    stage::Failure,
    stores::{Starting, Store},
};

const TTL: Duration = Duration::from_secs(2);
/// Seconds of a short run.
const SHORT: u64 = 20;

pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = stores::all().into_iter().map(trial).collect();
    #[cfg(feature = "redis")]
    trials.push(Trial::test("chaos::a_lock_without_an_owner_is_found_out", || {
        Ok(runtime()?.block_on(a_lock_without_an_owner_is_found_out())?)
    }));
    trials
}

fn trial(store: Store) -> Trial {
    let Store { name, network, start } = store;
    match network {
        true => {
            network_trial(&format!("chaos::{name}"), move || async move { in_runtime(name, start) })
        }
        false => Trial::test(format!("chaos::{name}"), move || Ok(in_runtime(name, start)?)),
    }
}

fn in_runtime(store: &'static str, start: fn() -> Starting) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        // A separate thread: a runtime must not start within another one.
        let run = scope.spawn(|| runtime()?.block_on(play(store, start)));
        let played = run.join().expect("the run does not panic");
        // Printed at once: the list of failures comes after the last trial.
        played.inspect_err(|error| eprintln!("chaos {store}: {error}"))
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

fn number(variable: &str) -> Result<Option<u64>, Failure> {
    let Some(value) = env::var_os(variable) else { return Ok(None) };
    let number = value.to_string_lossy().parse();
    number.map(Some).map_err(|error| format!("{variable}: {error}").into())
}

fn order(store: &'static str) -> Result<Order, Failure> {
    // 53 bits: every JSON reader keeps them exactly.
    let random = uuid::Uuid::new_v4().as_u64_pair().0 >> 11;
    let seed = number("DISTLOCK_SEED")?.unwrap_or(random);
    let length = Duration::from_secs(number("DISTLOCK_CHAOS")?.unwrap_or(SHORT));
    Ok(Order { store, seed, length, ttl: TTL })
}

async fn play(store: &'static str, start: fn() -> Starting) -> Result<(), Failure> {
    let order = order(store)?;
    let Order { seed, length, .. } = order;
    eprintln!("chaos {store}: DISTLOCK_SEED={seed} DISTLOCK_CHAOS={}", length.as_secs());
    let outcome = run(start().await?, &order).await?;
    let text = format!("chaos {store} (DISTLOCK_SEED={seed}): {}", outcome.text()?);
    if !outcome.is_clean() {
        return Err(text.into());
    }
    eprintln!("{text}");
    Ok(())
}

/// Proves that a run can find a broken lock: this one has a well-known mistake.
#[cfg(feature = "redis")]
async fn a_lock_without_an_owner_is_found_out() -> Result<(), Failure> {
    use lock_history::Rule;

    let order = Order { length: Duration::from_secs(8), ..order("naive")? };
    let stage = std::sync::Arc::new(naive::Naive::new().await?);
    let outcome: Outcome = run(stage, &order).await?;
    match outcome.report.count(Rule::Exclusion) {
        0 => Err(format!("not found out: {}", outcome.text()?).into()),
        _ => Ok(()),
    }
}
