//! Each experiment on each store that is compiled in has a verdict with an explanation. The verdict
//! changes when the locks change parts. One trial per cell:
//! `cargo test -p distlock-compare --test trials -- verdicts::c7_redis`.
//!
//! The wanted experiments are played before the first trial is judged, so that cells share their
//! servers. Those that measure time are in `alone`.

use std::{
    env, fs,
    process::{Command, ExitCode},
    sync::{Arc, OnceLock},
    thread,
};

use libtest_mimic::{Arguments, Failed, Trial};
use lock_compare::{Cell, Options, Pace, Part, Report, Store, Verdict, claims, run};

/// The variable with the file to which a process of this program writes the reports of `alone`.
const FILE: &str = "LOCK_COMPARE_TEST_ALONE";
/// They measure what a commit to the disk costs. Other temporary folders may be in memory.
const ON_DISK: &str = "/var/tmp";
type Reports = Result<Vec<Report>, String>;

static TOGETHER: OnceLock<Reports> = OnceLock::new();
static ALONE: OnceLock<Reports> = OnceLock::new();

#[derive(Clone, Copy)]
struct Place {
    number: u8,
    store: Store,
    is_alone: bool,
}

impl Place {
    fn all() -> impl Iterator<Item = Self> {
        let stores = || Store::ALL.into_iter().filter(|store| store.is_compiled_in());
        claims::all().iter().flat_map(move |one| {
            let (number, is_alone) = (one.claim().number, one.is_alone());
            stores().map(move |store| Self { number, store, is_alone })
        })
    }

    fn trial(self, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
        let module = if self.is_alone { "verdicts::alone" } else { "verdicts" };
        Trial::test(format!("{module}::c{}_{}", self.number, self.store.scheme()), test)
    }

    fn wanted(arguments: &Arguments) -> Vec<Self> {
        Self::all().filter(|one| !arguments.is_filtered_out(&one.trial(|| Ok(())))).collect()
    }

    /// Its cell in the report of this part.
    fn cell(self, reports: &[Report], part: Part) -> Option<&Cell> {
        let mut reports = reports.iter().filter(|report| report.part == part);
        reports.find_map(|report| report.cell(self.number, self.store))
    }
}

pub fn trials(arguments: &Arguments) -> Vec<Trial> {
    let wanted: Arc<[_]> = Place::wanted(arguments).into();
    let trial = |one: &Place| {
        let (one, wanted) = (*one, wanted.clone());
        one.trial(move || the_verdict_turns(one, &wanted))
    };
    wanted.iter().map(trial).collect()
}

fn the_verdict_turns(one: Place, wanted: &[Place]) -> Result<(), Failed> {
    let reports = match one.is_alone {
        false => TOGETHER.get_or_init(|| play_together(wanted)),
        true => ALONE.get_or_init(play_alone_on_disk),
    };
    let reports = reports.as_ref()?;
    let cell = one.cell(reports, Part::AsClaimed).ok_or("no verdict")?;
    let swapped = one.cell(reports, Part::Swapped).ok_or("no verdict when swapped")?;
    let text = explained(cell)?;
    if !cell.outcome.verdict.is_answer() {
        return Ok(());
    }
    let told = explained(swapped)?;
    let turned =
        swapped.outcome.verdict.is_answer() && swapped.outcome.verdict != cell.outcome.verdict;
    turned.then_some(()).ok_or_else(|| format!("as claimed: {text}\nswapped: {told}").into())
}

/// Both parts at the same time. Each plays some cells at a time, on servers of its own.
fn play_together(wanted: &[Place]) -> Reports {
    let places: Vec<_> = wanted.iter().filter(|one| !one.is_alone).copied().collect();
    let places = &places;
    thread::scope(|scope| {
        let start = |part| scope.spawn(move || play(places, part));
        let runs = [Part::AsClaimed, Part::Swapped].map(start);
        runs.into_iter().map(|run| run.join().map_err(|_| "it panicked")?).collect()
    })
}

/// One cell after the other.
fn play_alone(wanted: &[Place]) -> Reports {
    let places: Vec<_> = wanted.iter().filter(|one| one.is_alone).copied().collect();
    [Part::AsClaimed, Part::Swapped].map(|part| play(&places, part)).into_iter().collect()
}

/// In a process with another folder for its temporary files.
fn play_alone_on_disk() -> Reports {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(this);
    child.args(env::args_os().skip(1)).env(FILE, file.path()).env("TMPDIR", ON_DISK);
    let end = child.status().map_err(|error| error.to_string())?;
    if !end.success() {
        return Err(format!("the process that plays them: {end}"));
    }
    let reports = fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
    serde_json::from_str(&reports).map_err(|error| error.to_string())
}

/// Plays the cells of `alone`, if this is the process for that.
pub fn as_child(arguments: &Arguments) -> Option<ExitCode> {
    let file = env::var_os(FILE)?;
    let reports = play_alone(&Place::wanted(arguments)).expect("reports");
    fs::write(file, serde_json::to_string(&reports).expect("JSON")).expect("it is written");
    Some(ExitCode::SUCCESS)
}

fn play(places: &[Place], part: Part) -> Result<Report, String> {
    let mut claims: Vec<_> = places.iter().map(|one| one.number).collect();
    let mut stores: Vec<_> = places.iter().map(|one| one.store).collect();
    claims.dedup();
    stores.sort();
    stores.dedup();
    let pace = lock_lab::size(Pace::Quick, Pace::Full);
    let options = Options { claims, stores, part, pace, seed: 7, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(run(&options, &|_| {})).map_err(|error| error.to_string())
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
