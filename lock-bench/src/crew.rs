//! The workers of one process: tasks, which share a client.

use std::{
    mem::{replace, take},
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::{
    task::{JoinSet, coop::consume_budget},
    time::timeout,
};

use crate::{
    Failure, Turn, Workload,
    clock::now,
    contender::{Client, Contender, Worker},
    job::Job,
    pace::Pace,
};

/// Sets up sessions, watches and scripts, as in a program that runs already.
pub(crate) const WARM_UP: Duration = Duration::from_millis(500);
/// Longest time that a round lasts beyond its end.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many locks that are to be kept are asked for at once.
const AT_ONCE: usize = 64;

pub(crate) struct Crew {
    job: Job,
    clients: Vec<Box<dyn Client>>,
    hands: Vec<Hand>,
    /// Those that keep their lock.
    holders: Vec<Hand>,
}

/// A worker.
struct Hand {
    /// What all of its turns have in common.
    own: Turn,
    worker: Box<dyn Worker>,
}

impl Crew {
    /// Connects.
    pub(crate) async fn open(contender: Contender, job: Job) -> Result<Self, Failure> {
        let mut crew = Self { job, clients: Vec::new(), hands: Vec::new(), holders: Vec::new() };
        for number in crew.job.workers.clone() {
            if crew.clients.is_empty() || crew.job.apart {
                crew.clients.push(contender.open(&crew.job.url, &crew.job.workload).await?);
            }
            // One that cannot wait takes a name of its own for each worker.
            let names = if contender.role.waits() { crew.job.workload.names } else { u32::MAX };
            let name = number % names;
            let shared = crew.job.workload.is_shared(number);
            let full = format!("{}{name}", crew.job.prefix);
            let client = &crew.clients[crew.clients.len() - 1];
            let worker = client.worker(&full, shared).await?;
            let own = Turn { worker: number, name, shared, ..Turn::default() };
            crew.hands.push(Hand { own, worker });
        }
        Ok(crew)
    }

    /// Lets this many more workers take their lock and keep it.
    pub(crate) async fn hold(&mut self, count: u32) -> Result<(), Failure> {
        let rest = self.hands.split_off((count as usize).min(self.hands.len()));
        let holders = replace(&mut self.hands, rest);
        self.holders.extend(all(holders, true).await?);
        Ok(())
    }

    /// A round that is not measured.
    pub(crate) async fn warm_up(&mut self) -> Result<(), Failure> {
        self.play(WARM_UP.min(self.job.workload.seconds / 4)).await.map(drop)
    }

    /// One round.
    pub(crate) async fn round(&mut self) -> Result<Vec<Turn>, Failure> {
        self.play(self.job.workload.seconds).await
    }

    async fn play(&mut self, time: Duration) -> Result<Vec<Turn>, Failure> {
        let Workload { hold, .. } = self.job.workload;
        let (start, mut tasks) = (now(), JoinSet::new());
        for hand in take(&mut self.hands) {
            let pace = Pace::of(&self.job.workload, hand.own.worker, start, time);
            tasks.spawn(hand.work(pace, hold));
        }
        let mut turns = Vec::new();
        let ends = async {
            while let Some(done) = tasks.join_next().await {
                let (hand, own) = done??;
                turns.extend(own);
                self.hands.push(hand);
            }
            Ok::<_, Failure>(())
        };
        let late = |_| format!("a round is not over {} s after its end", PATIENCE.as_secs());
        timeout(time * 2 + PATIENCE, ends).await.map_err(late)??;
        Ok(turns)
    }

    /// Gives all back, and disconnects.
    pub(crate) async fn close(&mut self) -> Result<(), Failure> {
        all(take(&mut self.holders), false).await?;
        self.hands.clear();
        for client in take(&mut self.clients) {
            client.close().await?;
        }
        Ok(())
    }
}

/// Lets all workers acquire, or release, some of them at once.
async fn all(hands: Vec<Hand>, acquire: bool) -> Result<Vec<Hand>, Failure> {
    let turns = hands.into_iter().map(|mut hand| async move {
        match acquire {
            true => hand.worker.acquire().await.map(drop)?,
            false => hand.worker.release().await?,
        }
        Ok::<_, Failure>(hand)
    });
    stream::iter(turns).buffer_unordered(AT_ONCE).try_collect().await
}

impl Hand {
    async fn work(mut self, mut pace: Pace, hold: Duration) -> Result<(Self, Vec<Turn>), Failure> {
        let mut turns = Vec::new();
        while let Some((scheduled, asked)) = pace.next().await {
            let token = self.worker.acquire().await?;
            let granted = now();
            if !hold.is_zero() {
                lock_core::Clock::Boot.sleep(hold).await;
            }
            let releasing = now();
            self.worker.release().await?;
            let released = now();
            turns.push(Turn { scheduled, asked, granted, releasing, released, token, ..self.own });
            // A store in this process answers at once, and one task would keep the thread.
            consume_budget().await;
        }
        Ok((self, turns))
    }
}
