//! C32: the prefix is made a directory.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    Claim, Contestant, Distlock, Experiment, Failure, Hold, Nature, Outcome, Player, Side, Stage,
};

/// C32.
pub(crate) struct Separator;

const CLAIM: Claim = Claim {
    number: 32,
    title: "lock1 and lock10 are two",
    claimed: "The lock's name is made a directory; without the separator the queues of lock1 and \
              lock10 mix.",
    done: "One client holds lock10, another one asks for lock1; the same with a lock that takes \
           every name that begins alike for its own. In the control that lock plays distlock's \
           part.",
    measured: "Whether lock1 can be had while lock10 is held.",
    threshold: "Holds if distlock grants lock1, and the lock without a separator does not.",
};

const TTL: Duration = Duration::from_secs(10);

#[async_trait]
impl Experiment for Separator {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let distlock = stage.distlock().await?;
        let mixed = Mixed(distlock.clone());
        let (ours, apart) = match stage.is_swapped() {
            true => play(stage, &mixed, "ours").await?,
            false => play(stage, &distlock, "ours").await?,
        };
        let (wrong, wrong_apart) = play(stage, &mixed, "mixed").await?;
        let sentence =
            format!("{}: {}; {}: {}", ours.lock, ours.happened, wrong.lock, wrong.happened);
        Ok(Outcome::holds_if(apart && !wrong_apart, sentence).sides([ours, wrong]))
    }
}

/// Whether the two are apart, too.
async fn play(stage: &Stage, lock: &dyn Contestant, what: &str) -> Result<(Side, bool), Failure> {
    let (trace, name) = (stage.trace(&lock.label()), stage.name(what));
    let (ten, one) = (format!("{name}/lock10"), format!("{name}/lock1"));
    let (a, b) = (lock.client().await?, lock.client().await?);
    let (holding, asking) = (trace.client("holds lock10"), trace.client("asks for lock1"));
    let entry = holding.asks(&ten);
    let held = a.acquire(&ten, TTL, Duration::ZERO).await?.ok_or("lock10 is not free")?;
    entry.granted(held.token());
    let asked = asking.asks(&one);
    let got = b.acquire(&one, TTL, Duration::ZERO).await?;
    let apart = got.is_some();
    match got {
        Some(got) => {
            asked.granted(got.token());
            asked.releasing();
            got.release().await?;
            asked.released();
        }
        None => asked.ended("it is not granted"),
    }
    entry.releasing();
    held.release().await?;
    entry.released();
    let happened = match apart {
        true => "lock1 is granted while lock10 is held",
        false => "lock1 is not granted while lock10 is held",
    };
    let side = Side::new(lock.label(), lock.nature(), apart, happened);
    Ok((side.traced(trace.history(), &lock_history::Checker::new())?, apart))
}

/// A lock without the separator: its queue is every key that begins like its own.
#[derive(Clone)]
struct Mixed(Distlock);

struct Client(Arc<dyn Player>);

#[async_trait]
impl Contestant for Mixed {
    fn label(&self) -> String {
        "a prefix without a separator".into()
    }

    fn nature(&self) -> Nature {
        Nature::Simulation
    }

    fn boxed(&self) -> Box<dyn Contestant> {
        Box::new(self.clone())
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(Client(self.0.client().await?)))
    }
}

#[async_trait]
impl Player for Client {
    async fn acquire(
        &self,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure> {
        let queue = name.trim_end_matches(|c: char| c.is_ascii_digit());
        self.0.acquire(queue, ttl, wait).await
    }
}
