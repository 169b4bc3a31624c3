//! A holder's process is killed: the time until the next grant.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::{
    Failure, Figures, Progress, Row, Violated, Workload,
    clock::{SECOND, now},
    compute,
    contender::Contender,
    crew::Crew,
    fleet::Fleet,
    job::Job,
    stage::Stage,
    target::Target,
};

/// For this long the other one waits before the holder is killed.
const SETTLE: Duration = Duration::from_millis(500);
const LIMIT: Duration = Duration::from_secs(60);

/// Those that can wait.
pub(crate) fn who(store: &Target, workload: &Workload) -> Vec<Contender> {
    let mut who = store.who(workload);
    who.retain(|contender| contender.role.waits());
    who
}

/// A row per store and contender. All play at once: they wait for TTLs, not for processors.
pub(crate) async fn rows(stage: &Stage<'_>, workload: &Workload) -> Result<Vec<Row>, Failure> {
    let mut playing = Vec::new();
    for store in &stage.stores {
        if !store.has_processes() {
            let label = &store.label;
            stage.miss(format!("{label}, crash: its locks end with their process"));
        }
        let play = |contender| row(stage, store, contender, workload);
        playing.extend(who(store, workload).into_iter().map(play));
    }
    let rows: Vec<Option<Row>> = join_all(playing).await.into_iter().collect::<Result<_, _>>()?;
    Ok(rows.into_iter().flatten().collect())
}

async fn row(
    stage: &Stage<'_>,
    store: &Target,
    contender: Contender,
    workload: &Workload,
) -> Result<Option<Row>, Failure> {
    let (label, name) = (&store.label, contender.name);
    let what = store.what(name, "crash");
    let (mut figures, mut times) = (Figures::default(), Vec::new());
    for _ in 0..stage.options.rounds {
        times.push(round(stage, store, contender, workload));
    }
    for time in join_all(times).await {
        (stage.progress)(Progress::Begins("crash", label, name));
        let time = time.and_then(|times| after(&what, times));
        let nanos = match time {
            Ok(nanos) => nanos,
            Err(failure) => return stage.failed(&what, failure).map(|()| None),
        };
        (stage.progress)(Progress::Ended(SECOND as f64 / nanos.max(1) as f64));
        compute::add_time(&mut figures, nanos);
    }
    Ok(Some(Row::new(label, name, contender.role, figures)))
}

/// The time from the kill to the grant. A grant before the kill is one too many.
fn after(what: &str, (killed, granted): (u64, u64)) -> Result<u64, Failure> {
    granted.checked_sub(killed).ok_or_else(|| {
        let by = killed - granted;
        let timeline = format!("the next one had the lock {by} ns before its holder was killed");
        Violated { what: what.to_owned(), timeline }.into()
    })
}

/// When the holder was killed, and when the one that waited was granted.
async fn round(
    stage: &Stage<'_>,
    store: &Target,
    contender: Contender,
    workload: &Workload,
) -> Result<(u64, u64), Failure> {
    let job = stage.job(store, contender, workload);
    let alone = Workload { processes: 1, ..workload.clone() };
    let holding = Job { workers: 0..1, held: 1, workload: alone.clone(), ..job.clone() };
    let waiting = Job { workers: 1..2, held: 1, workload: alone, ..job };
    let mut holder = Fleet::start(&holding).await?;
    let waits = stage.place.run(async move {
        let mut crew = Crew::open(contender, waiting).await?;
        crew.hold(1).await?;
        let granted = now();
        crew.close().await?;
        Ok::<_, Failure>(granted)
    });
    let kill = async {
        lock_core::Clock::Boot.sleep(SETTLE).await;
        let killed = now();
        holder.kill().await?;
        Ok::<_, Failure>(killed)
    };
    let both = async { tokio::join!(kill, waits) };
    let late = |_| format!("no grant {} s after the kill", LIMIT.as_secs());
    let (killed, granted) = timeout(LIMIT, both).await.map_err(late)?;
    Ok((killed?, granted??))
}
