//! A lock that is broken on purpose is told, and not measured. A store that stands still shows.

use std::time::Duration;

use lock_bench::{Failure, Options, Preset, Progress, Report, Violated, Workload, run};
use lock_core::Clock;
use lock_memory::{Defect, Faults, MemoryStore};

/// distlock alone, on the store of a name.
fn alone(name: &str, seconds: Duration, custom: Option<Workload>) -> Options {
    let stores = vec![format!("memory:{name}")];
    Options { stores, seconds, custom, rounds: 1, alone: true, ..Options::default() }
}

/// Measures the store of a name: 16 clients want the same lock, and keep it for a while.
async fn measured(name: &str) -> Result<Report, Failure> {
    let mut load = Preset::HotName.workload(Duration::from_millis(200));
    load.hold = Duration::from_millis(2);
    let sweep = Some(("workers".into(), vec![16.0]));
    let options = Options { rounds: 3, sweep, ..alone(name, load.seconds, Some(load)) };
    run(&options, &|_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_grants_a_lock_twice_ends_the_run_with_its_timeline() -> Result<(), Failure> {
    MemoryStore::broken(Defect::GrantsTwoOfACrowd).put("broken");
    let failure = measured("broken").await.expect_err("two workers hold it at once");
    let Violated { what, timeline } = *failure.downcast::<Violated>()?;
    assert_eq!(what, "memory, distlock, workers = 16");
    assert!(timeline.matches("worker ").count() >= 4, "{timeline}");
    // The same load on the whole store has figures.
    assert_eq!(measured("whole").await?.sweeps.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn distlock_excludes() -> Result<(), Failure> {
    let presets = vec![Preset::HotName, Preset::Permits, Preset::Readers];
    let seconds = Duration::from_millis(50);
    let options = Options { presets, ..alone("bench-exclusion", seconds, None) };
    assert_eq!(run(&options, &|_| {}).await?.sections.len(), 3);
    Ok(())
}

/// All that were to ask meanwhile waited for the store, though it was asked once.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stands_still_shows_in_the_open_loop() -> Result<(), Failure> {
    const STALL: Duration = Duration::from_secs(1);
    let stall = |progress: Progress<'_>| {
        if let Progress::Begins(..) = progress {
            let clients = || MemoryStore::named("stalls").faults();
            clients().iter().for_each(Faults::partition);
            tokio::spawn(async move {
                Clock::Boot.sleep(STALL).await;
                clients().iter().for_each(Faults::heal);
            });
        }
    };
    let mut load = Preset::Uncontended.workload(STALL * 2);
    load.rate = Some(1000.0);
    let report = run(&alone("stalls", load.seconds, Some(load)), &stall).await?;
    let acquire = &report.sections[0].rows[0].figures.acquire;
    assert!(acquire.p99.0[0] >= 500_000.0 && acquire.p999.0[0] >= 500_000.0, "{acquire:?}");
    Ok(())
}
