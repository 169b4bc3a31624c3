//! The executable properties on every store that is compiled in. Each check is one named test on a
//! private server. A skipped check reports its reason, and skips are counted.

mod file;
mod lab;
#[cfg(any(
    feature = "redis",
    feature = "etcd",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]
#[path = "../../shared/remote.rs"]
mod remote;
mod report;
pub mod stores;

use std::{sync::Arc, time::Duration};

use libtest_mimic::{Failed, Trial};
use lock_core::properties::{
    self, AS_MUTEX, AsMutex, Check, Checked, Guise, Harness, Outcome, Property,
};

pub use self::report::Report;
use self::stores::Store;
use crate::support::{size, undisturbed::undisturbed};

/// Longest time for a check. The slowest wait for a few TTLs of several seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// A machine that stands still for this time ends locks: a third of the shortest TTL.
const STANDSTILL: Duration = Duration::from_secs(1);

/// All checks. Each adds its outcome to the report.
pub fn trials(report: &Arc<Report>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (turn, store) in stores::all().into_iter().enumerate() {
        for (at, property) in properties::all().iter().enumerate() {
            trials.extend(exclusive(store, turn + at, property, report));
            if property.of_exclusive {
                trials.extend(as_mutex(store, turn, property, report));
            }
        }
    }
    trials
}

fn exclusive(
    store: Store,
    turn: usize,
    property: &'static Property,
    report: &Arc<Report>,
) -> impl Iterator<Item = Trial> {
    property.checks.iter().enumerate().map(move |(number, check)| {
        let name = format!("suite::{}::{}::{}", store.name, property.name, check.name);
        let is_played = size((turn + number).is_multiple_of(store.one_of), true);
        trial(name, store, *check, None, report).with_ignored_flag(!is_played)
    })
}

/// The checks of an exclusive lock with every other kind that acts like one. On a store without
/// virtual time one kind plays each of them, on the next store another kind; `DISTLOCK_LONG` plays
/// all.
fn as_mutex(
    store: Store,
    turn: usize,
    property: &'static Property,
    report: &Arc<Report>,
) -> impl Iterator<Item = Trial> {
    AS_MUTEX.iter().enumerate().flat_map(move |(player, (kind, guise))| {
        property.checks.iter().enumerate().map(move |(number, check)| {
            let name = format!("suite::{}::{kind}::{}::{}", store.name, property.name, check.name);
            let is_its_turn = store.one_of == 1 && (turn + number) % AS_MUTEX.len() == player;
            let is_played = size(store.virtual_time || is_its_turn, true);
            trial(name, store, *check, Some(*guise), report).with_ignored_flag(!is_played)
        })
    })
}

fn trial(
    name: String,
    store: Store,
    check: Check,
    guise: Option<Guise>,
    report: &Arc<Report>,
) -> Trial {
    let report = report.clone();
    Trial::test(name.clone(), move || {
        match store.runtime().block_on(play(store, check, guise))? {
            Outcome::Skipped(reason) => report.skipped(&name, reason),
            _ => report.kept(),
        }
        Ok(())
    })
}

/// In virtual time no machine is late.
async fn play(store: Store, check: Check, guise: Option<Guise>) -> Result<Outcome, Failed> {
    let scene = async || run(store, check, guise).await.map_err(|failure| failure.to_string());
    match store.virtual_time {
        true => Ok(scene().await?),
        false => Ok(undisturbed(STANDSTILL, scene).await),
    }
}

async fn run(store: Store, check: Check, guise: Option<Guise>) -> Checked {
    let harness: Box<dyn Harness> = (store.start)().await?;
    let harness = match guise {
        Some(guise) => Box::new(AsMutex { harness, guise }),
        None => harness,
    };
    let done = tokio::time::timeout(LIMIT, check.run(&*harness)).await;
    done.unwrap_or_else(|_| Err(format!("not done after {LIMIT:?}").into()))
}

impl Store {
    /// A runtime per check: tasks that a check leaves running end with it.
    fn runtime(&self) -> tokio::runtime::Runtime {
        let mut builder = match self.virtual_time {
            true => tokio::runtime::Builder::new_current_thread(),
            false => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.enable_all().worker_threads(2).start_paused(self.virtual_time);
        builder.build().expect("a runtime for the check")
    }
}
