//! Each experiment on each store that is compiled in has a verdict with an explanation. The verdict
//! changes when the locks change parts. One trial per cell:
//! `cargo test --test verdicts -- c7_redis`.
//!
//! The filtered experiments are played in two runs before the first trial is judged, so that all
//! cells share their servers.

use std::{process::ExitCode, sync::OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use lock_compare::{Cell, Options, Pace, Part, Report, Store, Verdict, claims, run};

/// The reports: as claimed, and with the parts swapped.
static PLAYED: OnceLock<Result<[Report; 2], String>> = OnceLock::new();

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let stores = || Store::ALL.into_iter().filter(|store| store.is_compiled_in());
    let numbers = claims::all().iter().map(|experiment| experiment.claim().number);
    let cells = numbers.flat_map(|number| stores().map(move |store| (number, store)));
    let name = |(number, store): (u8, Store)| format!("c{number}_{}", store.scheme());
    let is_wanted = |cell: &(u8, Store)| match &arguments.filter {
        Some(filter) if arguments.exact => name(*cell) == *filter,
        Some(filter) => name(*cell).contains(filter),
        None => true,
    };
    let wanted: Vec<_> = cells.filter(is_wanted).collect();
    let trials = wanted.iter().map(|cell| {
        let ((number, store), all) = (*cell, wanted.clone());
        Trial::test(name(*cell), move || the_verdict_turns(&all, number, store))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn the_verdict_turns(all: &[(u8, Store)], number: u8, store: Store) -> Result<(), Failed> {
    let played = PLAYED.get_or_init(|| play_all(all)).as_ref()?;
    let [cell, swapped] = played.each_ref().map(|report| report.cell(number, store));
    let (cell, swapped) = (cell.ok_or("no verdict")?, swapped.ok_or("no verdict when swapped")?);
    let text = explained(cell)?;
    if !cell.outcome.verdict.is_answer() {
        return Ok(());
    }
    let told = explained(swapped)?;
    let turned =
        swapped.outcome.verdict.is_answer() && swapped.outcome.verdict != cell.outcome.verdict;
    turned.then_some(()).ok_or_else(|| format!("as claimed: {text}\nswapped: {told}").into())
}

fn play_all(cells: &[(u8, Store)]) -> Result<[Report; 2], String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let play = |part| runtime.block_on(play(cells, part)).map_err(|error| error.to_string());
    Ok([play(Part::AsClaimed)?, play(Part::Swapped)?])
}

async fn play(cells: &[(u8, Store)], part: Part) -> Result<Report, lock_compare::Failure> {
    let mut claims: Vec<_> = cells.iter().map(|(number, _)| *number).collect();
    let mut stores: Vec<_> = cells.iter().map(|(_, store)| *store).collect();
    claims.dedup();
    stores.sort();
    stores.dedup();
    let options =
        Options { claims, stores, part, pace: Pace::Quick, seed: 7, ..Options::default() };
    run(&options, &|_| {}).await
}

/// Returns the verdict in words. It has a reason, and an answer has evidence or figures. On this
/// machine, which has every server, nothing is left out.
fn explained(cell: &Cell) -> Result<String, Failed> {
    let outcome = &cell.outcome;
    let text = format!("{}: {}", outcome.verdict, outcome.sentence);
    let shown = !outcome.sides.is_empty() || !outcome.figures.is_empty();
    let silent = outcome.sentence.is_empty() || outcome.verdict.is_answer() && !shown;
    if silent || matches!(outcome.verdict, Verdict::Failed | Verdict::NotRun) {
        return Err(text.into());
    }
    Ok(text)
}
