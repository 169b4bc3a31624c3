//! What a run does to stores in use, said before it begins.

use crate::{Options, Preset, Workload};

/// What a store in use may get without a question.
const CONNECTIONS: u64 = 50;
const REQUESTS: f64 = 50_000.0;
/// A store answers no client faster than this many times per second.
const ANSWERS: f64 = 10_000.0;
/// How often a worker that waits asks, where it has to.
const POLLS: f64 = 100.0;
/// Connections of a client, and contenders on a store.
const OF_A_CLIENT: u64 = 4;
const CONTENDERS: u64 = 5;
/// Requests of an acquire and a release.
const OF_A_TURN: f64 = 6.0;

/// What a run does to stores in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    /// A sentence for each load. Empty without a store in use.
    pub lines: Vec<String>,
    /// Whether the most of all loads is within what nobody needs to be asked for.
    pub harmless: bool,
}

/// Says what a run will do at the most.
pub fn impact(options: &Options) -> Impact {
    let mut impact = Impact { lines: Vec::new(), harmless: true };
    if options.lab || options.stores.is_empty() {
        return impact;
    }
    for (name, workload) in loads(options) {
        let (connections, keys) = (connections(options, &workload), keys(&workload));
        let requests = requests(&workload);
        impact.harmless &= connections <= CONNECTIONS && requests <= REQUESTS;
        impact.lines.push(format!(
            "{name}: up to {connections} connections, {keys} keys below distlock-bench/, and \
             {requests:.0} requests per second"
        ));
    }
    impact
}

/// Each load, and the greatest one of a sweep.
fn loads(options: &Options) -> Vec<(String, Workload)> {
    let name = |preset: Option<Preset>| preset.map_or("custom", Preset::name).to_owned();
    let loads = options.loads().into_iter().map(|(preset, load)| (name(preset), load));
    let sweep = options.sweep.iter().map(|(over, values)| {
        let most = values.iter().copied().fold(1.0, f64::max);
        let mut load = options.swept(over, most);
        if over == "workers" {
            // Each has a client of its own.
            load.processes = load.workers;
        }
        (format!("sweep of {over}"), load)
    });
    loads.chain(sweep).collect()
}

fn connections(options: &Options, workload: &Workload) -> u64 {
    let (workers, processes) = (u64::from(workload.workers), u64::from(workload.processes));
    let distlock = processes * OF_A_CLIENT;
    // The usual way may need a connection for each worker.
    let beside = (CONTENDERS - 1) * processes * OF_A_CLIENT + workers;
    if options.alone { distlock } else { distlock + beside }
}

/// An entry of each worker, and some for each name.
fn keys(workload: &Workload) -> u64 {
    u64::from(workload.workers) + 3 * u64::from(workload.names)
}

fn requests(workload: &Workload) -> f64 {
    let (workers, names) = (f64::from(workload.workers), f64::from(workload.names));
    let active = workers.min(names);
    match workload.rate {
        Some(rate) => rate * OF_A_TURN + workers * POLLS,
        None => active * ANSWERS + (workers - active) * POLLS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(presets: &[Preset]) -> Options {
        let stores = vec!["redis://me:secret@host".into()];
        Options { stores, presets: presets.to_vec(), ..Options::default() }
    }

    #[test]
    fn one_task_is_harmless_and_many_names_are_not() {
        assert!(impact(&of(&[Preset::Uncontended])).harmless);
        let many = impact(&of(&[Preset::Uncontended, Preset::ManyNames]));
        assert!(!many.harmless);
        assert_eq!(many.lines.len(), 2);
        assert!(!many.lines.concat().contains("secret"));
    }

    #[test]
    fn a_store_of_its_own_needs_no_consent() {
        let mut options = of(&[Preset::ManyNames]);
        options.stores.clear();
        assert_eq!(impact(&options), Impact { lines: Vec::new(), harmless: true });
    }

    #[test]
    fn a_sweep_counts_with_its_greatest_value() {
        let mut options = of(&[]);
        options.sweep = Some(("workers".into(), vec![1.0, 1000.0]));
        let impact = impact(&options);
        assert!(!impact.harmless && impact.lines[0].contains("sweep of workers"));
    }
}
