//! The executable properties on every store that is compiled in. Each check is one named test on a
//! private server. A skipped check reports its reason, and skips are counted.

mod file;
mod lab;
mod report;
pub mod stores;

use std::{sync::Arc, time::Duration};

use libtest_mimic::{Failed, Trial};
use lock_core::properties::{self, AS_MUTEX, AsMutex, Check, Guise, Harness, Outcome, Property};

pub use self::report::Report;
use self::stores::Store;

/// Longest time for a check. The slowest wait for a few TTLs of several seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// All checks. Each adds its outcome to the report.
pub fn trials(report: &Arc<Report>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for store in stores::all() {
        for (property, check, guise) in checks() {
            let as_mutex = guise.map_or(String::new(), |(name, _)| format!("{name}::"));
            let of_store = format!("suite::{}::{as_mutex}", store.name);
            let name = format!("{of_store}{}::{}", property.name, check.name);
            let (report, guise) = (report.clone(), guise.map(|(_, guise)| guise));
            trials
                .push(Trial::test(name.clone(), move || play(&name, store, check, guise, &report)));
        }
    }
    trials
}

type NamedGuise = Option<(&'static str, Guise)>;

/// Every check. Checks of an exclusive lock also run with every other kind that acts like one.
fn checks() -> impl Iterator<Item = (&'static Property, Check, NamedGuise)> {
    let guises = || [None].into_iter().chain(AS_MUTEX.iter().copied().map(Some));
    properties::all().iter().flat_map(move |property| {
        let guises = guises().filter(|guise| guise.is_none() || property.of_exclusive);
        let checks =
            move |guise| property.checks.iter().map(move |check| (property, *check, guise));
        guises.flat_map(checks)
    })
}

fn play(
    name: &str,
    store: Store,
    check: Check,
    guise: Option<Guise>,
    report: &Report,
) -> Result<(), Failed> {
    let run = async {
        let harness: Box<dyn Harness> = (store.start)().await?;
        let harness = match guise {
            Some(guise) => Box::new(AsMutex { harness, guise }),
            None => harness,
        };
        match tokio::time::timeout(LIMIT, check.run(&*harness)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("not done after {LIMIT:?}").into()),
        }
    };
    match store.runtime().block_on(run) {
        Ok(Outcome::Skipped(reason)) => report.skipped(name, reason),
        Ok(_) => report.kept(),
        Err(failure) => return Err(Failed::from(failure.to_string())),
    }
    Ok(())
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
