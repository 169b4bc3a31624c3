//! `distlock bench`: figures, tables, comparisons, and what it refuses.

use lock_bench::{Quantiles, Report, Role, Row, Workload};

use crate::place::Place;

/// Runs `bench`. Returns its exit code, stdout and stderr.
fn bench(place: &Place, line: &str) -> (Option<i32>, String, String) {
    let words: Vec<_> = ["bench"].into_iter().chain(line.split_whitespace()).collect();
    place.run(&words)
}

fn report(place: &Place, line: &str) -> Report {
    let (code, out, error) = bench(place, &format!("--json {line}"));
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_str(&out).expect("one JSON value")
}

/// distlock's rows, with their presets.
fn rows(report: &Report) -> Vec<(&str, &Row)> {
    let rows = report.sections.iter().flat_map(|section| {
        let rows = section.rows.iter().filter(|row| row.role == Role::Distlock);
        rows.map(move |row| (&*section.preset, row))
    });
    rows.collect()
}

/// How long all rounds and warm-ups are to take, in seconds. `took` also has the connecting.
fn planned(report: &Report) -> f64 {
    let sections = report.sections.iter().map(|section| {
        let rounds: usize = section.rows.iter().map(|row| row.figures.rate.0.len()).sum();
        let warm_ups = section.rows.len() as f64 / 4.0;
        (rounds as f64 + warm_ups) * section.workload.seconds.as_secs_f64()
    });
    sections.sum()
}

#[test]
fn memory_and_a_file_are_measured_without_a_store() {
    let place = Place::new();
    let report = report(&place, "");
    let rows = rows(&report);
    let places: Vec<_> = rows.iter().map(|(preset, row)| (*preset, &*row.store)).collect();
    let expected: Vec<_> = ["uncontended", "many-names", "hot-name"]
        .into_iter()
        .flat_map(|preset| ["sqlite", "memory"].map(|store| (preset, store)))
        .collect();
    assert_eq!(places, expected);
    println!("planned {} s, took {} s", planned(&report), report.took);
    assert!(planned(&report) < 10.0, "{} s", planned(&report));
    for (preset, Row { store, figures, .. }) in rows {
        let rates = &figures.rate.0;
        assert!(rates.len() == 3 && rates.iter().all(|rate| *rate > 0.0), "{preset} on {store}");
        let Quantiles { p50, p99, p999, max } = &figures.acquire;
        for round in 0..3 {
            let times = [p50, p99, p999, max].map(|quantile| quantile.0[round]);
            assert!(times[0] > 0.0 && times.is_sorted(), "{preset} on {store}: {times:?}");
        }
        let is_hot = preset == "hot-name";
        assert_eq!(figures.handover.is_some(), is_hot, "{preset} on {store}");
        assert_eq!(figures.fairness.is_some(), is_hot, "{preset} on {store}");
    }
    assert_eq!(place.names(), Vec::<String>::new(), "the usual store is left alone");
}

/// One task cannot be faster than its own requests: rate and time say the same.
#[test]
fn rate_and_time_fit_together() {
    let report = report(&Place::new(), "--preset uncontended --alone --seconds 0.3");
    for (_, Row { store, figures, .. }) in rows(&report) {
        for (rate, time) in figures.rate.0.iter().zip(&figures.acquire.p50.0) {
            // Half are at least that slow, and each is released before the next.
            let most = 2.0 * 1e6 / time;
            assert!(*rate <= most * 1.1, "{store}: {rate} per second, and {time} µs each");
        }
    }
}

#[test]
fn a_load_by_hand_is_played_as_it_is_given() {
    let place = Place::new();
    let load = "--workers 4 --names 2 --hold 2ms --ttl 20s --rate 200 --seconds 0.4 --alone";
    let report = report(&place, &format!("--preset hot-name {load}"));
    assert_eq!(report.sections.len(), 1);
    assert_eq!(report.sections[0].preset, "custom");
    let Workload { workers, names, processes, .. } = report.sections[0].workload;
    assert_eq!((workers, names, processes), (4, 2, 1));
    for (_, Row { store, figures, .. }) in rows(&report) {
        // Two names, each held for 2 ms and more, could be granted up to 1000 times a second.
        let rates = &figures.rate.0;
        assert!(rates.iter().all(|rate| *rate < 260.0), "{store}: {rates:?} of 200 starts");
    }
    let command = &report.command;
    assert!(
        command.starts_with("distlock bench --json --preset hot-name --workers 4"),
        "{command}"
    );
}

#[test]
fn a_table_fits_80_columns() {
    let (code, out, error) = bench(&Place::new(), "--preset hot-name --seconds 0.1");
    assert_eq!(code, Some(0), "{error}");
    assert!(out.starts_with("hot-name: Tasks of one process"), "{out}");
    for part in ["on memory:", "on sqlite:", "Command: `distlock bench --preset hot-name"] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    // Without a terminal, a line for each round.
    assert!(error.contains("distlock: hot-name on memory: distlock: "), "{error}");
}

/// The same report, with distlock's rates and times changed by a factor in both.
fn changed(report: &Report, factor: f64) -> String {
    let mut report = report.clone();
    let rows = report.sections.iter_mut().flat_map(|section| &mut section.rows);
    for row in rows.filter(|row| row.role == Role::Distlock) {
        row.figures.rate.0.iter_mut().for_each(|rate| *rate *= factor);
        row.figures.acquire.p50.0.iter_mut().for_each(|time| *time /= factor);
    }
    serde_json::to_string(&report).expect("a report is JSON")
}

#[test]
fn a_regression_is_said_and_has_an_exit_code() {
    let place = Place::new();
    let load = "--preset uncontended --seconds 0.1 --rounds 5 --alone";
    let before = report(&place, load);
    let file = place.path().join("before.json");
    for (factor, code, said) in [(20.0, 1, "worse: uncontended on"), (0.05, 0, "better: ")] {
        std::fs::write(&file, changed(&before, factor)).unwrap();
        let line = format!("{load} --against {}", file.display());
        let (ended, out, error) = bench(&place, &line);
        assert!(ended == Some(code) && out.contains(said), "{factor}: {ended:?}\n{out}{error}");
        // Programs get the report alone.
        let (ended, out, error) = bench(&place, &format!("{line} --json"));
        let is_json = serde_json::from_str::<Report>(&out).is_ok();
        assert!(ended == Some(code) && is_json && error.contains(said), "{ended:?}\n{error}");
    }
    let other = format!("--preset hot-name --seconds 0.1 --alone --against {}", file.display());
    let (code, _, error) = bench(&place, &other);
    assert!(code == Some(64) && error.contains("has no figure with the load"), "{error}");
}

#[test]
fn a_page_is_written() {
    let place = Place::new();
    let file = place.path().join("report.html");
    let line = format!("--preset uncontended --seconds 0.1 --alone --report {}", file.display());
    assert_eq!(bench(&place, &line).0, Some(0));
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("uncontended"), "{page}");
}

#[test]
fn wrong_usage_is_refused_before_the_work() {
    let place = Place::new();
    let file = place.path().join("wrong.json");
    std::fs::write(&file, "{\"format\":1}").unwrap();
    let against = format!("--against {}", file.display());
    let unwritable = "--report /proc/none/report.html";
    for (line, expected, said) in [
        ("--preset hot", 64, "hot-name"),
        ("--preset crash", 64, "--lab"),
        ("--preset hot-name,herd --workers 2", 64, "one preset"),
        ("--lab --preset crash --workers 3", 64, "a load of its own"),
        ("--workers 0", 64, "1..=1000"),
        ("--workers 1001", 64, "1..=1000"),
        ("--names 2", 64, "--names 2 is more than 1 workers"),
        ("--workers 2 --processes 3", 64, "processes = 3"),
        ("--processes 65", 64, "1..=64"),
        ("--hold 5", 64, "as in 15s"),
        ("--hold 2s --seconds 1", 64, "does not fit into a round of 1s"),
        ("--kind shared", 64, "readers"),
        ("--kind readers", 64, "--workers 10"),
        ("--kind permits", 64, "--workers 2"),
        ("--rate 0", 64, "above 0"),
        ("--preset herd --rate 10", 64, "herd asks once"),
        ("--seconds 0", 64, "0.01"),
        ("--rounds 2", 64, "3..=100"),
        ("--sweep names", 64, "KEY=VALUE"),
        ("--sweep keys=1,2", 64, "unknown key"),
        ("--lab --store memory:", 64, "--lab starts private servers"),
        ("--lab --store nonsense", 64, "known: sqlite, etcd"),
        ("--store nonsense", 64, "SCHEME:"),
        ("--against /nowhere.json", 71, "/nowhere.json"),
        (against.as_str(), 64, "not a report"),
        (unwritable, 71, "/proc/none"),
    ] {
        let (code, out, error) = bench(&place, line);
        let refused = code == Some(expected) && out.is_empty() && error.contains(said);
        assert!(refused, "{line}: {code:?} {out}{error}");
    }
}

#[test]
fn a_store_in_use_gets_no_great_load_unasked() {
    let place = Place::new();
    // The store is not there: whatever connects would say so.
    let line = "--store redis://me:QXZ@127.0.0.1:1 --workers 1000 --names 1000 --seconds 0.1";
    let (code, out, error) = bench(&place, line);
    let asks = error.contains("requests per second") && error.contains("--yes");
    assert!(code == Some(64) && out.is_empty() && asks, "{code:?}: {out}{error}");
    assert!(!error.contains("QXZ"), "{error}");
    let small = format!("--store {} --preset uncontended --seconds 0.1 --alone", place.store());
    let (code, out, error) = bench(&place, &small);
    assert!(code == Some(0) && out.contains("on sqlite:"), "{code:?}: {error}");
    assert!(!error.contains("on memory"), "{error}");
    assert_eq!(place.names(), Vec::<String>::new(), "nothing is left");
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_holds_many_locks_and_admits_many_clients() {
    let server = lock_lab::Redis::start().await.unwrap();
    let (held, workers) = lock_lab::size(([10, 2_000], [2, 50]), ([1_000, 100_000], [10, 1_000]));
    for (key, values) in [("held", held), ("workers", workers)] {
        let [few, many] = values;
        let store = server.url();
        let line = format!("--store {store} --yes --alone --sweep {key}={few},{many}");
        let run = move || report(&Place::new(), &format!("--seconds 0.5 {line}"));
        let report = tokio::task::spawn_blocking(run).await.unwrap();
        let points = &report.sweeps[0].points;
        let found: Vec<_> = points.iter().map(|point| point.value).collect();
        assert_eq!(found, values.map(f64::from), "{points:?}");
        assert!(points.iter().all(|point| point.rate > 0.0), "{key}: {points:?}");
        let has_memory = points[1].memory.is_some_and(|bytes| bytes > 0.0);
        assert_eq!(has_memory, key == "held", "{points:?}");
    }
}

#[cfg(feature = "redis")]
mod alone {
    use super::*;

    /// The way to the server gets longer by a fifth. Its delay is most of each time, so that a busy
    /// machine changes little.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_slowdown_of_a_fifth_is_found_each_time() {
        use std::time::Duration;

        let server = lock_lab::Redis::start().await.unwrap();
        let proxy = lock_lab::Proxy::start(server.addr()).await.unwrap();
        let store = server.url_via(&proxy);
        let load = format!("--store {store} --preset uncontended --alone --seconds 0.6 --json");
        let usual = Duration::from_millis(40);
        let run = async |delay: Duration, line: String| {
            proxy.delay(delay);
            let run = move || bench(&Place::new(), &line);
            tokio::task::spawn_blocking(run).await.unwrap()
        };
        let (code, before, error) = run(usual, load.clone()).await;
        assert_eq!(code, Some(0), "{error}");
        let place = Place::new();
        let file = place.path().join("before.json");
        std::fs::write(&file, before).unwrap();
        let again = format!("{load} --against {}", file.display());
        for _ in 0..3 {
            let (code, _, error) = run(usual.mul_f64(1.2), again.clone()).await;
            let is_found = error.contains("worse: uncontended on redis: µs to acquire");
            assert!(code == Some(1) && is_found, "{code:?}: {error}");
            let (code, _, error) = run(usual, again.clone()).await;
            assert_eq!(code, Some(0), "equal runs: {error}");
        }
    }
}
