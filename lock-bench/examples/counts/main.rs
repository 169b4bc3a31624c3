//! Exact costs of an acquire and its release, per store: client instructions and allocations,
//! requests, bytes. `counts.json` has those of the last change that was meant.
//!
//! `.ci/counts` builds this program and the one that it counts, `pairs`, and shows the costs.
//! `.ci/counts --check` fails if one has risen by more than 3 %. `.ci/counts --write REASON` writes
//! them down.

mod callgrind;
mod figures;
mod place;
mod program;
mod record;

use std::{collections::BTreeMap, env, error::Error, process::ExitCode};

use self::{figures::Figures, place::Place, program::Program, record::Record};

type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: .ci/counts [--all] [--check | --write REASON]";
/// A lone pair, and tasks with a name each.
const GATED: [u64; 2] = [1, 8];
/// Works move between so many tasks, and valgrind is slow.
const SHOWN: [u64; 1] = [64];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("counts: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether nothing has risen.
fn run(arguments: &[&str]) -> Result<bool, Failure> {
    let [program, arguments @ ..] = arguments else { return Err(USAGE.into()) };
    let program = Program::new(program);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments {
            [] => {
                count(&program, &SHOWN, &|_, _| false).await?;
                Ok(true)
            }
            ["--check"] => check(&program).await,
            ["--write", reason] if !reason.trim().is_empty() => {
                let mut record = Record::here(reason)?;
                record.counts = count(&program, &SHOWN, &|_, _| false).await?;
                record.write()?;
                Ok(true)
            }
            _ => Err(USAGE.into()),
        }
    })
}

async fn check(program: &Program) -> Result<bool, Failure> {
    let (before, mut now) = (Record::read()?, Record::here("")?);
    let other = before.other_than(&now);
    // The minimum only falls: the first round that is within the bound is enough.
    let is_enough = |what: &str, now: &Figures| other.is_some() || before.admits(what, now);
    now.counts = count(program, &[], &is_enough).await?;
    let found = before.differences(&now);
    for difference in &found {
        println!("{difference}");
    }
    if let Some(other) = other {
        println!("{} was written with {other}: this is no failure here", record::FILE);
        return Ok(true);
    }
    if !found.is_empty() {
        if !before.has_dependencies_of(&now) {
            println!("Cargo.lock has changed since: it may be a dependency.");
        }
        println!("If the change is worth it, say why: {} --write REASON", record::COMMAND);
    }
    Ok(found.is_empty())
}

/// Counts on each store of the program, and prints. `is_enough` ends the rounds of one. `shown` are
/// the numbers of tasks whose costs are printed only.
async fn count(
    program: &Program,
    shown: &[u64],
    is_enough: &dyn Fn(&str, &Figures) -> bool,
) -> Result<BTreeMap<String, Figures>, Failure> {
    let mut counts = BTreeMap::new();
    for scheme in program.stores().await? {
        let place = Place::open(program, &scheme).await?;
        for tasks in GATED {
            let what = named(&scheme, tasks);
            let is_enough = |figures: &Figures| is_enough(&what, figures);
            let figures = place.count(tasks, &is_enough).await;
            let figures = figures.map_err(|error| format!("{what}: {error}"))?;
            println!("{what}: {figures}");
            counts.insert(what, figures);
        }
        for tasks in shown {
            println!("{}: {} (not gated)", named(&scheme, *tasks), place.show(*tasks).await?);
        }
    }
    Ok(counts)
}

fn named(scheme: &str, tasks: u64) -> String {
    format!("{scheme}, {tasks} task{}", if tasks > 1 { "s" } else { "" })
}
