//! Each experiment on each store that is compiled in: it has a verdict, which is explained, and which
//! turns when the locks change parts. One trial per cell: `cargo test --test verdicts -- c7_redis`.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use lock_compare::{Cell, Options, Pace, Part, Store, Verdict, claims, run};

fn main() -> ExitCode {
    let stores = || Store::ALL.into_iter().filter(|store| store.is_compiled_in());
    let numbers = claims::all().iter().map(|experiment| experiment.claim().number);
    let cells = numbers.flat_map(|number| stores().map(move |store| (number, store)));
    let trials = cells.map(|(number, store)| {
        Trial::test(format!("c{number}_{}", store.scheme()), move || {
            the_verdict_turns(number, store)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn the_verdict_turns(number: u8, store: Store) -> Result<(), Failed> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let cell = play(number, store, Part::AsClaimed).await?;
        let text = explained(&cell)?;
        if !cell.outcome.verdict.is_answer() {
            return Ok(());
        }
        let swapped = play(number, store, Part::Swapped).await?;
        let told = explained(&swapped)?;
        let turned =
            swapped.outcome.verdict.is_answer() && swapped.outcome.verdict != cell.outcome.verdict;
        turned.then_some(()).ok_or_else(|| format!("as claimed: {text}\nswapped: {told}").into())
    })
}

async fn play(number: u8, store: Store, part: Part) -> Result<Cell, Failed> {
    let (claims, stores) = (vec![number], vec![store]);
    let options =
        Options { claims, stores, part, pace: Pace::Quick, seed: 7, ..Options::default() };
    let mut report = run(&options, &|_| {}).await?;
    Ok(report.rows.remove(0).cells.remove(0))
}

/// The verdict in words: it has a reason, and an answer has evidence or figures. On this machine,
/// which has every server, nothing is left out.
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
