//! Plays all loads of a run.

use std::collections::BTreeMap;

use lock_core::wall_clock;
use lock_report::{Machine, versions};

use crate::{
    Failure, Figures, Options, Preset, Progress, Report, Row, Section, Turn, Workload,
    clock::{SECOND, now},
    compute, cores, crash,
    crew::WARM_UP,
    leader,
    stage::{Stage, Store},
    stand::Stand,
    sweep,
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
    let loads = loads(options)?;
    let stage = Stage::set(options, progress).await?;
    progress(Progress::Rounds(rounds(&stage, &loads)));
    let mut sections = Vec::new();
    for (preset, workload) in loads {
        let mut rows = match preset {
            Some(Preset::Crash) => crash::rows(&stage, &workload).await?,
            Some(Preset::Leader) => leader::rows(&stage, &workload).await?,
            _ => rows(&stage, preset.map_or("custom", Preset::name), &workload).await?,
        };
        compute::set_ratios(&mut rows);
        let models = preset.map_or("A load by hand.", Preset::models).to_owned();
        let preset = preset.map_or("custom", Preset::name).to_owned();
        sections.push(Section { preset, models, workload, rows });
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
    let private = || stage.stores.iter().filter(|store| store.target.server().is_some());
    let mut versions = versions();
    versions.retain(|program, _| {
        let program = program.to_lowercase();
        program == "distlock" || private().any(|store| program.contains(store.target.scheme))
    });
    versions
}

/// The loads, or what is wrong with them.
fn loads(options: &Options) -> Result<Vec<(Option<Preset>, Workload)>, Failure> {
    let needs_lab = options.presets.iter().find(|preset| preset.needs_lab() && !options.lab);
    if let Some(preset) = needs_lab {
        return Err(format!("the preset {preset} needs private servers: --lab").into());
    }
    if options.rounds == 0 || options.seconds.is_zero() {
        return Err("a round lasts more than 0 s, and there is at least one".into());
    }
    let mut loads: Vec<_> = options
        .presets
        .iter()
        .map(|preset| (Some(*preset), preset.workload(options.seconds)))
        .collect();
    if let (Some(custom), None) = (&options.custom, &options.sweep) {
        custom.check()?;
        loads.push((None, custom.clone()));
    }
    for (preset, workload) in &mut loads {
        if *preset == Some(Preset::Crash) {
            workload.ttl = Some(crash::TTL);
        }
    }
    sweep::check(options)?;
    Ok(loads)
}

fn rounds(stage: &Stage<'_>, loads: &[(Option<Preset>, Workload)]) -> usize {
    let of_store = |store: &Store| -> usize {
        let of_load = |(preset, workload): &(Option<Preset>, Workload)| match preset {
            Some(Preset::Leader) => usize::from(leader::is_played(store.target.scheme)),
            Some(Preset::Crash) => {
                store.who(workload).filter(|contender| contender.role().waits()).count()
            }
            _ => store.who(workload).count(),
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
        for round in 0..stage.options.rounds as usize {
            let count = playing.len();
            for place in 0..count {
                playing[(place + round) % count].round(stage, workload).await?;
            }
        }
        for Playing { stand, row, failed, .. } in playing {
            let what = stand.what();
            if let Err(failure) = stand.close().await {
                stage.failed(&what, failure)?;
            }
            rows.extend((!failed).then_some(row));
        }
    }
    Ok(rows)
}

/// A contender that plays, and what it has shown so far.
struct Playing<'a> {
    stand: Stand<'a>,
    row: Row,
    /// Whether its timeline is part of the report.
    shows_a_second: bool,
    failed: bool,
}

/// Connects all contenders of a load.
async fn ready<'a>(
    stage: &'a Stage<'a>,
    store: &'a Store,
    load: &str,
    workload: &Workload,
) -> Result<Vec<Playing<'a>>, Failure> {
    let label = &store.target.label;
    if workload.processes > 1 && !store.target.has_processes() {
        stage.miss(format!("{label}, {load}: it excludes the tasks of one process only"));
    }
    let mut playing = Vec::new();
    for contender in store.who(workload) {
        let job = stage.job(store, &**contender, workload);
        match Stand::open(stage, &store.target, contender, load, job).await {
            Ok(stand) => {
                let (name, role) = (contender.name(), contender.role());
                let row = Row::new(label, name, role, Figures::default());
                let shows_a_second = load == Preset::HotName.name() && row.role.waits();
                playing.push(Playing { stand, row, shows_a_second, failed: false });
            }
            Err(failure) => stage.failed(&store.target.what(&contender.name(), load), failure)?,
        }
    }
    Ok(playing)
}

impl Playing<'_> {
    async fn round(&mut self, stage: &Stage<'_>, workload: &Workload) -> Result<(), Failure> {
        if self.failed {
            return Ok(());
        }
        match self.stand.round().await {
            Ok(round) => {
                compute::add(&mut self.row.figures, &round, workload);
                if self.shows_a_second && self.row.second.is_empty() {
                    self.row.second = second(&round.turns);
                }
            }
            Err(failure) => {
                self.failed = true;
                stage.failed(&self.stand.what(), failure)?;
            }
        }
        Ok(())
    }
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
