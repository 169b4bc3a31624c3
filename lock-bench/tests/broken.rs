//! A lock that is broken on purpose is told, and not measured.

use std::time::Duration;

use lock_bench::{Failure, Options, Preset, Report, Violated, run};
use lock_memory::{Defect, MemoryStore};

/// Measures the store of a name: 16 clients want the same lock, and keep it for a while.
async fn measured(name: &str) -> Result<Report, Failure> {
    let mut load = Preset::HotName.workload(Duration::from_millis(200));
    load.hold = Duration::from_millis(2);
    let options = Options {
        stores: vec![format!("memory:{name}")],
        seconds: load.seconds,
        custom: Some(load),
        rounds: 3,
        sweep: Some(("workers".into(), vec![16.0])),
        alone: true,
        ..Options::default()
    };
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
