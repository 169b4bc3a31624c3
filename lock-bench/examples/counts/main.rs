//! Exact costs of an acquire and its release, per store: client instructions and allocations,
//! requests, bytes. `counts.json` has those of the last change that was meant.
//!
//! `cargo run --profile bench -p distlock-bench --features all --example counts` shows them.
//! `-- --check` fails if one has risen by more than 3 %. `-- --write REASON` writes them down.

mod callgrind;
mod figures;
mod pairs;
mod place;
mod record;

use std::{collections::BTreeMap, env, error::Error, process::ExitCode};

use distlock::STORES;

use self::{figures::Figures, place::Place, record::Record};

type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: counts [--check | --write REASON]";
/// A lone pair, and tasks with a name each.
const TASKS: [u64; 2] = [1, 8];

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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments {
            [pairs::COMMAND, count, tasks] => {
                pairs::run(count.parse()?, tasks.parse()?).await?;
                Ok(true)
            }
            [] => count(&|_, _| false).await.map(|_| true),
            ["--check"] => check().await,
            ["--write", reason] if !reason.trim().is_empty() => {
                let counts = count(&|_, _| false).await?;
                Record::of(reason, counts)?.write()?;
                Ok(true)
            }
            _ => Err(USAGE.into()),
        }
    })
}

async fn check() -> Result<bool, Failure> {
    let before = Record::read()?;
    // The minimum only falls: the first round that is within the bound is enough.
    let is_within = |what: &str, now: &Figures| {
        before.counts.get(what).is_some_and(|before| now.risen(before).is_empty())
    };
    let now = Record::of("", count(&is_within).await?)?;
    let mut risen = Vec::new();
    for (what, figures) in &now.counts {
        match before.counts.get(what) {
            Some(before) => {
                risen.extend(figures.risen(before).iter().map(|rise| format!("{what}: {rise}")));
            }
            None => risen.push(format!("{what}: not in the file")),
        }
    }
    for rise in &risen {
        println!("{rise}");
    }
    if let Some(other) = before.other_than(&now) {
        println!("{} was written with {other}, so nothing is compared strictly", record::FILE);
        return Ok(true);
    }
    if !risen.is_empty() {
        println!("If the change is worth it, write down why: {} --write REASON", record::COMMAND);
    }
    Ok(risen.is_empty())
}

/// Counts on each store that is compiled in, and prints. `is_enough` ends the rounds of one.
async fn count(
    is_enough: &dyn Fn(&str, &Figures) -> bool,
) -> Result<BTreeMap<String, Figures>, Failure> {
    let mut counts = BTreeMap::new();
    for store in STORES.iter().filter(|store| store.compiled_in) {
        let place = Place::open(store.scheme).await?;
        for tasks in TASKS {
            let what =
                format!("{}, {tasks} task{}", store.scheme, if tasks > 1 { "s" } else { "" });
            let is_enough = |figures: &Figures| is_enough(&what, figures);
            let figures = place.count(tasks, &is_enough).await;
            let figures = figures.map_err(|error| format!("{what}: {error}"))?;
            println!("{what}: {figures}");
            counts.insert(what, figures);
        }
    }
    Ok(counts)
}
