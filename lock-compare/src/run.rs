//! Plays experiments.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use lock_core::deadline::wall_clock;
use lock_report::{Machine, versions};
use uuid::Uuid;

use crate::{
    Cell, Experiment, Failure, Missing, Outcome, Pace, Part, Report, Row, Stage, Store, Verdict,
    claims, experiment::Where, failure, ground::Grounds, report::ClaimText, time::Time,
};

/// Number of cells played at once, except for cells that measure time.
const AT_ONCE: usize = 6;
/// Time limit of one cell.
const LIMIT: Duration = Duration::from_secs(150);

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The numbers of the claims. Empty means all.
    pub claims: Vec<u8>,
    /// The stores. Empty means all.
    pub stores: Vec<Store>,
    /// Stores in use, by URL. Only harmless experiments are played there.
    pub in_use: BTreeMap<Store, String>,
    /// The thoroughness.
    pub pace: Pace,
    /// The parts that the locks play.
    pub part: Part,
    /// The seed of everything random.
    pub seed: u64,
    /// The folder for traces, if they are to be kept. It is created if it does not exist.
    pub traces: Option<PathBuf>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// This many cells will be played.
    Cells(usize),
    /// A cell begins.
    Begins(&'static str, Store),
    /// A cell has ended: the claim's number, and the result.
    Ended(u8, &'a Cell),
}

/// Plays all experiments of a run.
///
/// An error in an experiment becomes the verdict of its cell.
pub async fn run(
    options: &Options,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Report, Failure> {
    let (time, started) = (Time::start(), humantime::format_rfc3339_seconds(wall_clock()));
    if let Some(folder) = &options.traces {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let (stage, stores) = (options.stage(), options.stores());
    let wanted = |number: &u8| options.claims.is_empty() || options.claims.contains(number);
    let experiments: Vec<_> =
        claims::all().iter().filter(|one| wanted(&one.claim().number)).collect();
    progress(Progress::Cells(experiments.len() * stores.len()));
    let (alone, together): (Vec<_>, Vec<_>) =
        experiments.iter().copied().partition(|experiment| experiment.is_alone());
    let play = |experiment: &'static Experiment, store| {
        let stage = stage.of(experiment.claim(), store);
        async move {
            let claim = experiment.claim();
            progress(Progress::Begins(claim.title, store));
            let cell = cell(experiment, stage, options).await;
            progress(Progress::Ended(claim.number, &cell));
            ((claim.number, store), cell)
        }
    };
    let cells = |of: &[&'static Experiment]| {
        let cells = of.iter().flat_map(|one| stores.iter().map(|store| play(one, *store)));
        cells.collect::<Vec<_>>()
    };
    // Servers start while no time is measured.
    let together = stream::iter(cells(&together)).buffer_unordered(AT_ONCE);
    let mut played: BTreeMap<_, _> = together.collect().await;
    played.extend(stream::iter(cells(&alone)).buffered(1).collect::<BTreeMap<_, _>>().await);
    let row = |experiment: &&'static Experiment| {
        let claim = experiment.claim();
        let cells = stores.iter().filter_map(|store| played.remove(&(claim.number, *store)));
        Row { claim: ClaimText::from(claim), cells: cells.collect() }
    };
    let rows: Vec<_> = experiments.iter().map(row).collect();
    let mut report = Report {
        format: Report::FORMAT,
        started: started.to_string(),
        took: time.since().as_secs_f64(),
        seed: options.seed,
        pace: options.pace,
        part: options.part,
        command: options.command(None, &[]),
        machine: Machine::this(),
        versions: versions(),
        missing: missing(&rows),
        stores,
        rows,
    };
    if let Some(folder) = &options.traces {
        keep_traces(&mut report, folder)?;
    }
    Ok(report)
}

async fn cell(experiment: &'static Experiment, stage: Stage, options: &Options) -> Cell {
    let (time, store, number) = (Time::start(), stage.store, experiment.claim().number);
    let harms = stage.grounds.is_in_use(store) && experiment.place != Where::Anywhere;
    let outcome = match (store.is_compiled_in(), harms) {
        (false, _) => Outcome::not_run(Missing::client_of(store).to_string()),
        (_, true) => Outcome::not_run("it would do harm to a store in use"),
        _ => played(experiment, stage).await,
    };
    let command = options.command(Some(number), &[store]);
    Cell { store, took: time.since().as_secs_f64(), command, outcome }
}

/// Plays in its own task: a panic ends only one cell.
async fn played(experiment: &'static Experiment, stage: Stage) -> Outcome {
    let task = tokio::spawn(async move { (experiment.play)(&stage).await });
    let stop = task.abort_handle();
    let failed = |why: String| Outcome::new(Verdict::Failed, why);
    match tokio::time::timeout(LIMIT, task).await {
        Ok(Ok(Ok(outcome))) => outcome,
        Ok(Ok(Err(failure))) => match failure::missing(&failure) {
            Some(missing) => Outcome::not_run(missing),
            None => failed(failure.to_string()),
        },
        Ok(Err(panic)) => failed(panic.to_string()),
        Err(_) => {
            stop.abort();
            failed(format!("it took longer than {} s", LIMIT.as_secs()))
        }
    }
}

fn missing(rows: &[Row]) -> Vec<String> {
    let cells = rows.iter().flat_map(|row| &row.cells);
    let not_run = cells.filter(|cell| cell.outcome.verdict == Verdict::NotRun);
    let mut missing: Vec<_> = not_run.map(|cell| cell.outcome.sentence.clone()).collect();
    missing.sort();
    missing.dedup();
    missing
}

fn keep_traces(report: &mut Report, folder: &std::path::Path) -> Result<(), Failure> {
    for row in &mut report.rows {
        for cell in &mut row.cells {
            for (number, side) in cell.outcome.sides.iter_mut().enumerate() {
                let Some(history) = &side.history else { continue };
                let file = format!("C{}-{}-{number}.jsonl", row.claim.number, cell.store.scheme());
                let lines: Vec<_> = history.lines().collect();
                fs::write(folder.join(&file), lines.join("\n") + "\n")?;
                side.trace = Some(file);
            }
        }
    }
    Ok(())
}

impl Options {
    fn stage(&self) -> Stage {
        let run = Uuid::new_v4().simple().to_string();
        Stage {
            store: Store::Memory,
            pace: self.pace,
            part: self.part,
            seed: self.seed,
            claim: 0,
            grounds: Arc::new(Grounds::new(self.in_use.clone())),
            run: run[..8].into(),
        }
    }

    /// Returns the stores in the order of the report.
    fn stores(&self) -> Vec<Store> {
        let wanted = |store: &Store| match self.stores.is_empty() {
            true => self.in_use.is_empty() || self.in_use.contains_key(store),
            false => self.stores.contains(store),
        };
        Store::ALL.into_iter().filter(wanted).collect()
    }

    /// Returns the command that repeats the run, or a part of it, without URLs: they may contain
    /// passwords.
    fn command(&self, claim: Option<u8>, stores: &[Store]) -> String {
        let mut command = String::from("distlock compare");
        let claims: Vec<_> = match claim {
            Some(claim) => vec![claim],
            None => self.claims.clone(),
        };
        let claims: Vec<_> = claims.iter().map(|number| format!("C{number}")).collect();
        if !claims.is_empty() {
            command += &format!(" --claims {}", claims.join(","));
        }
        let stores = if stores.is_empty() { &self.stores } else { stores };
        let schemes: Vec<_> = stores.iter().map(|store| store.scheme()).collect();
        if !schemes.is_empty() {
            command += &format!(" --stores {}", schemes.join(","));
        }
        if self.pace == Pace::Quick {
            command += " --quick";
        }
        if self.part == Part::Swapped {
            command += " --swap";
        }
        command + &format!(" --seed {}", self.seed)
    }
}
