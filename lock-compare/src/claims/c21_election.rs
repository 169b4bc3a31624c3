//! C21: leader election is the queue with a value.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use distlock::{Election, Leadership, Locks, Observer};
use lock_history::Loss;
use tokio::time::{sleep, timeout};

use crate::{Actor, Claim, Entry, Failure, Figure, Nature, Outcome, Side, Stage, Trace};

pub(super) const CLAIM: Claim = Claim {
    number: 21,
    title: "Leader election",
    claimed: "Leader election is the same queue with a value: Campaign, Proclaim, Resign, Leader \
              and Observe; a job that the leader alone does goes to the next one when it fails, \
              and a lost session ends the leadership.",
    done: "Three candidates campaign: the first proclaims, its job fails, it resigns and campaigns \
           again; the second is killed; when its time is up, the store tells of the third. In \
           the control each candidate campaigns under a name of its own.",
    measured: "How many do the job at the same time, and what an observer and the next leaders see.",
    threshold: "Holds if one does the job at a time, and the values and the order are seen.",
};

const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let trace = stage.trace("distlock");
    let played = play(stage, &trace).await?;
    let history = trace.history();
    let sentence = format!(
        "at most {} of 3 candidates do the job at the same time; seen: {}",
        played.at_once,
        played.seen.join(", then "),
    );
    let well = played.at_once == 1 && played.in_order;
    let side = Side::new("distlock", Nature::Distlock, well, sentence.clone());
    let side = side.story(played.lines).played(history)?;
    let most = Figure::count("doing the job at the same time", played.at_once as f64, "");
    Ok(Outcome::holds_if(well, sentence).side(side).figure(most))
}

struct Played {
    at_once: usize,
    in_order: bool,
    seen: Vec<String>,
    lines: Vec<String>,
}

/// The job. It counts the candidates that do it at the same time.
#[derive(Clone, Default)]
struct Job(Arc<(AtomicUsize, AtomicUsize)>);

impl Job {
    fn begins(&self) {
        let now = self.0.0.fetch_add(1, SeqCst) + 1;
        self.0.1.fetch_max(now, SeqCst);
    }

    fn ends(&self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

async fn play(stage: &Stage, trace: &Trace) -> Result<Played, Failure> {
    let ttl = stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(3));
    let (job, name) = (Job::default(), stage.name("job"));
    // In the control, each candidate has its own election.
    let named = |who: &str| stage.pick(name.clone(), format!("{name}-{who}"));
    let watcher = stage.connect().await?;
    let mut observer = watcher.election(named("A"))?.observe().await?;
    let mut seen = vec![next(&mut observer).await?];

    let (locks, url) = (stage.connect().await?, stage.shared().await?.url());
    let (a, first) = lead(trace, &locks, "A", &named("A"), ttl).await?;
    job.begins();
    seen.push(next(&mut observer).await?);
    let home = Actor::start("B")?;
    let away = home.run(async move { distlock::connect(url).await }).await??;
    let other = stage.connect().await?;
    let mut waiting_b = waits(trace, &away, "B", &named("B"), ttl)?;
    if leads(&waiting_b, &watcher, &named("B"), 1).await? {
        job.begins();
    }
    let mut waiting_c = waits(trace, &other, "C", &named("C"), ttl)?;
    if leads(&waiting_c, &watcher, &named("C"), 2).await? {
        job.begins();
        let at_once = job.0.1.load(SeqCst);
        let lines = vec!["each of the three leads an election of its own".to_owned()];
        let leaders = [first, waiting_b.granted().await?, waiting_c.granted().await?];
        for leader in leaders {
            leader.resign().await?;
        }
        return Ok(Played { at_once, in_order: false, seen, lines });
    }
    let mut first = first;
    first.proclaim("A, busy").await?;
    seen.push(next(&mut observer).await?);
    let mut lines = vec![format!("token of A: {}", first.token())];

    // A's job fails.
    job.ends();
    a.releasing();
    first.resign().await?;
    a.released();
    let second = waiting_b.granted().await?;
    job.begins();
    seen.push(leader(&mut observer).await?);
    lines.push(format!("A's job fails and A resigns: B leads, with token {}", second.token()));
    let again = waits(trace, &locks, "A again", &named("A"), ttl)?;

    // B dies abruptly.
    let fault = trace.fault("kill", "B");
    job.ends();
    waiting_b.entry.ended("killed");
    home.kill((second, away));
    let third = waiting_c.granted().await?;
    fault.healed();
    job.begins();
    seen.push(leader(&mut observer).await?);
    lines.push(format!("B is killed: C leads, with token {}", third.token()));

    // An operator ends C's session.
    let entries = locks.inspect(named("C")).await?;
    let attempt = entries.first().and_then(|entry| entry.attempt).ok_or("nobody leads")?;
    let fault = trace.fault("revoke", "C");
    locks.revoke(named("C"), attempt).await?;
    let reason = timeout(PATIENCE, third.lost()).await?;
    waiting_c.entry.lost(Loss::Store, &reason.to_string());
    fault.healed();
    job.ends();
    lines.push(format!("C's leadership is ended: {reason}"));
    let mut again = again;
    let last = again.granted().await?;
    seen.push(leader(&mut observer).await?);
    lines.push(format!("A leads again, with token {}", last.token()));
    again.entry.releasing();
    last.resign().await?;
    again.entry.released();

    let expected = ["nobody", "A", "A, busy", "B", "C", "A again"];
    let in_order = seen == expected;
    Ok(Played { at_once: job.0.1.load(SeqCst), in_order, seen, lines })
}

struct Candidate {
    entry: Entry,
    campaign: tokio::task::JoinHandle<distlock::Result<Leadership>>,
}

impl Candidate {
    async fn granted(&mut self) -> Result<Leadership, Failure> {
        let leadership = timeout(PATIENCE, &mut self.campaign).await???;
        self.entry.granted(Some(leadership.token().value()));
        self.entry.believes(|| leadership.is_valid());
        Ok(leadership)
    }
}

fn election(locks: &Locks, name: &str, ttl: Duration) -> Result<Election, Failure> {
    Ok(locks.election(name)?.ttl(ttl))
}

async fn lead(
    trace: &Trace,
    locks: &Locks,
    who: &'static str,
    name: &str,
    ttl: Duration,
) -> Result<(Entry, Leadership), Failure> {
    let entry = trace.client(who).asks(name);
    let leadership = election(locks, name, ttl)?.campaign(who).await?;
    entry.granted(Some(leadership.token().value()));
    entry.believes(|| leadership.is_valid());
    Ok((entry, leadership))
}

fn waits(
    trace: &Trace,
    locks: &Locks,
    who: &'static str,
    name: &str,
    ttl: Duration,
) -> Result<Candidate, Failure> {
    let entry = trace.client(who).asks(name);
    let campaign = tokio::spawn(election(locks, name, ttl)?.campaign(who));
    Ok(Candidate { entry, campaign })
}

/// Waits until this many candidates stand in the queue, or this one leads. Returns whether it
/// leads.
async fn leads(
    candidate: &Candidate,
    locks: &Locks,
    name: &str,
    in_line: usize,
) -> Result<bool, Failure> {
    let look = async {
        loop {
            let entries = locks.inspect(name).await?;
            if candidate.campaign.is_finished() {
                return Ok(true);
            }
            if entries.iter().filter(|entry| !entry.holds).count() >= in_line {
                return Ok(false);
            }
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, look).await?
}

/// Returns the next leader's value from the observer, or "nobody".
async fn next(observer: &mut Observer) -> Result<String, Failure> {
    let change = timeout(PATIENCE, observer.next()).await?.ok_or("the observer has ended")??;
    Ok(change.map_or("nobody".into(), |leader| String::from_utf8_lossy(&leader.value).into()))
}

/// Returns the next leader from the observer. Skips the times without one.
async fn leader(observer: &mut Observer) -> Result<String, Failure> {
    loop {
        let value = next(observer).await?;
        if value != "nobody" {
            return Ok(value);
        }
    }
}
