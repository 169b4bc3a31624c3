//! Plays all loads of a run.

use std::collections::BTreeMap;

use lock_core::wall_clock;
use lock_report::{Machine, versions};

use crate::{
    Failure, Figures, Options, Preset, Progress, Report, Row, Section, Turn, Workload,
    clock::{SECOND, now},
    compute,
    contender::Contender,
    cores, crash,
    crew::WARM_UP,
    leader,
    stage::Stage,
    stand::Stand,
    sweep,
    target::Target,
};

/// How many turns a timeline has at the most: more would be a grey block.
const SHOWN: usize = 240;

/// Runs a benchmark.
///
/// The program's `main` calls [`child`](crate::child()) first: a fleet is made of processes of this
/// program.
///
/// # Errors
///
/// [`Violated`](crate::Violated) if a lock did not exclude. Otherwise what is wrong with the
/// options, or why nothing was measured; what fails beside others is in [`Report::missing`].
pub async fn run(
    options: &Options,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Report, Failure> {
    let (began, started) = (now(), humantime::format_rfc3339_seconds(wall_clock()).to_string());
    options.check()?;
    let (stage, loads) = (Stage::set(options, progress).await?, options.loads());
    progress(Progress::Rounds(rounds(&stage, &loads)));
    let mut sections = Vec::new();
    for (preset, workload) in loads {
        let name = preset.map_or("custom", Preset::name);
        let mut rows = match preset {
            Some(Preset::Crash) => crash::rows(&stage, &workload).await?,
            Some(Preset::Leader) => leader::rows(&stage, &workload).await?,
            _ => rows(&stage, name, &workload).await?,
        };
        compute::set_ratios(&mut rows);
        let models = preset.map_or("A load by hand.", Preset::models).to_owned();
        sections.push(Section { preset: name.to_owned(), models, workload, rows });
    }
    let sweeps = sweep::play(&stage).await?;
    let missing = stage.missing();
    if sections.iter().all(|section| section.rows.is_empty()) && sweeps.is_empty() {
        return Err(format!("nothing was measured: {}", missing.join("; ")).into());
    }
    Ok(Report {
        format: Report::FORMAT,
        started,
        took: (now() - began) as f64 / SECOND as f64,
        command: options.command.clone(),
        machine: Machine::this(),
        versions: versions_of(&stage),
        method: method(options),
        missing,
        sections,
        sweeps,
    })
}

/// Only of what has played: a store in use may have another version than this machine's.
fn versions_of(stage: &Stage<'_>) -> BTreeMap<String, String> {
    let private = || stage.stores.iter().filter(|store| store.server().is_some());
    let mut versions = versions();
    versions.retain(|program, _| {
        let program = program.to_lowercase();
        program == "distlock" || private().any(|store| program.contains(store.scheme))
    });
    versions
}

fn rounds(stage: &Stage<'_>, loads: &[(Option<Preset>, Workload)]) -> usize {
    let of_store = |store: &Target| -> usize {
        let of_load = |(preset, workload): &(Option<Preset>, Workload)| match preset {
            Some(Preset::Leader) => usize::from(leader::is_played(store.scheme)),
            Some(Preset::Crash) => crash::who(store, workload).len(),
            _ => store.who(workload).len(),
        };
        loads.iter().map(of_load).sum()
    };
    let played: usize = stage.stores.iter().map(of_store).sum();
    (played + sweep::points(stage)) * stage.options.rounds as usize
}

async fn rows(stage: &Stage<'_>, load: &str, workload: &Workload) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for store in &stage.stores {
        let mut playing = ready(stage, store, load, workload).await?;
        let count = playing.len();
        for round in 0..stage.options.rounds as usize {
            for place in 0..count {
                let (stand, row) = &mut playing[(place + round) % count];
                if let Some(shown) = row
                    && let Err(failure) = add(stand, shown, load, workload).await
                {
                    *row = None;
                    stage.failed(&stand.what(), failure)?;
                }
            }
        }
        for (stand, row) in playing {
            let what = stand.what();
            if let Err(failure) = stand.close().await {
                stage.failed(&what, failure)?;
            }
            rows.extend(row);
        }
    }
    Ok(rows)
}

/// A contender that plays, and what it has shown so far. `None` after a failure.
type Playing<'a> = (Stand<'a>, Option<Row>);

/// Connects all contenders of a load.
async fn ready<'a>(
    stage: &'a Stage<'a>,
    store: &'a Target,
    load: &str,
    workload: &Workload,
) -> Result<Vec<Playing<'a>>, Failure> {
    let label = &store.label;
    if workload.processes > 1 && !store.has_processes() {
        stage.miss(format!("{label}, {load}: it excludes the tasks of one process only"));
    }
    let mut playing = Vec::new();
    for contender in store.who(workload) {
        let job = stage.job(store, contender, workload);
        let Contender { name, role, .. } = contender;
        match Stand::open(stage, store, contender, load, job).await {
            Ok(stand) => {
                playing.push((stand, Some(Row::new(label, name, role, Figures::default()))))
            }
            Err(failure) => stage.failed(&store.what(name, load), failure)?,
        }
    }
    Ok(playing)
}

/// Adds a round.
async fn add(
    stand: &mut Stand<'_>,
    row: &mut Row,
    load: &str,
    workload: &Workload,
) -> Result<(), Failure> {
    let round = stand.round().await?;
    compute::add(&mut row.figures, &round, workload);
    if load == Preset::HotName.name() && row.role.waits() && row.second.is_empty() {
        row.second = second(&round.turns);
    }
    Ok(())
}

/// The turns of the first second, in the order of their grants.
fn second(turns: &[Turn]) -> Vec<Turn> {
    let first = turns.iter().map(|turn| turn.granted).min().unwrap_or_default();
    let within = |turn: &&Turn| turn.granted < first + SECOND;
    turns.iter().filter(within).take(SHOWN).copied().collect()
}

fn method(options: &Options) -> Vec<String> {
    let Options { rounds, seconds, .. } = options;
    let warm_up = WARM_UP.min(*seconds / 4);
    vec![
        format!("{rounds} rounds of {seconds:?}; a figure has one value per round."),
        "The contenders of a store take turns, and each round begins with another one.".to_owned(),
        format!("Before its first round each contender plays {warm_up:?} that do not count."),
        "The workers of a process are tasks of one thread, and share a client.".to_owned(),
        "A round's rate counts from the first request to the last release.".to_owned(),
        "Contenders that cannot wait take a name of their own for each worker.".to_owned(),
        "The first 20,000 grants of each round are checked for exclusion.".to_owned(),
        "Private servers and files keep their data in memory, so that no disk decides.".to_owned(),
        cores::told(),
    ]
}
