//! C31: a waiter must keep its lease alive while it waits, or it loses its place.

use std::time::Duration;

use distlock::Locks;
use lock_history::History;
use tokio::{sync::mpsc, time::sleep};

use crate::{
    Actor, Claim, Contestant, Distlock, Failure, Figure, Nature, Outcome, Side, Stage, Trace,
    isolation::stand_still,
    scenario::{has, joined, turn, until_line},
};

pub(super) const CLAIM: Claim = Claim {
    number: 31,
    title: "A waiter keeps its lease alive",
    claimed: "A waiter must keep its lease alive while it waits, or it loses its place.",
    done: "A holds the lock, B queues up and then C; A goes on holding for two TTLs and \
           releases. In one play B renews its place as distlock does, in the other B stands still \
           and renews nothing.",
    measured: "Who gets in after A: B who came first, or C.",
    threshold: "Holds if B gets in first when it renews its place, and C when B does not.",
};

#[derive(Clone, Copy)]
enum Waiting {
    Alive,
    Silent,
}

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (first, second) =
        stage.pick((Waiting::Alive, Waiting::Silent), (Waiting::Silent, Waiting::Alive));
    let (first, second, others) =
        tokio::join!(play(stage, first, "first"), play(stage, second, "second"), others(stage));
    let ((first, kept), (second, lost)) = (first?, second?);
    let sentence = Side::summaries([&first, &second]);
    let ttl = stage.short_ttl();
    Ok(Outcome::holds_if(kept && !lost, sentence)
        .sides([first, second])
        .sides(others?)
        .figure(Figure::time("TTL", ttl))
        .figure(Figure::time("the wait", ttl * 2)))
}

/// Also returns whether B kept its place.
async fn play(stage: &Stage, how: Waiting, what: &str) -> Result<(Side, bool), Failure> {
    let label = match how {
        Waiting::Alive => "distlock",
        Waiting::Silent => "distlock, a waiter that stands still",
    };
    let line = Line {
        name: stage.name(what),
        trace: stage.trace(label),
        ttl: stage.short_ttl(),
        lock: stage.distlock().await?,
        operator: stage.connect().await?,
    };
    let (kept, told) = line.play(how).await?;
    let happened = match kept {
        true => "B kept its place and gets in before C",
        false => "B's place is gone, and C gets in although B came first",
    };
    let history: History = line.trace.history();
    let side = Side::new(label, Nature::Distlock, kept, happened).evidence(told);
    Ok((side.played(history)?, kept))
}

struct Line {
    name: String,
    trace: Trace,
    ttl: Duration,
    lock: Distlock,
    operator: Locks,
}

impl Line {
    /// Returns whether B entered before C, and the reply to B.
    async fn play(&self, how: Waiting) -> Result<(bool, String), Failure> {
        let [a, b, c] = ["A", "B", "C"].map(|who| self.trace.client(who).asks(&self.name));
        let guard = self.operator.lock(&self.name)?.ttl(self.ttl).acquire().await?;
        a.granted(Some(guard.token().value()));
        let home = Actor::start("B")?;
        let lock: &dyn Contestant = &self.lock;
        let (tell, mut got_in) = mpsc::unbounded_channel();
        let client = lock.client_in(&home).await?;
        let first = turn(client, self.name.clone(), self.ttl, (b, "B"), tell.clone());
        let first = tokio::spawn(first);
        let place = joined(&self.operator, &self.name, 1).await?;
        let client = lock.client().await?;
        let second = tokio::spawn(turn(client, self.name.clone(), self.ttl, (c, "C"), tell));
        joined(&self.operator, &self.name, 2).await?;
        let pause = match how {
            Waiting::Alive => None,
            Waiting::Silent => Some(stand_still(&home, &self.operator).await?),
        };
        // Only the wait itself is played.
        sleep(self.ttl * 2).await;
        if pause.is_some() {
            until_line(&self.operator, &self.name, |line| !has(line, place)).await?;
        }
        a.releasing();
        guard.release().await?;
        a.released();
        let next = got_in.recv().await.ok_or("nobody gets in")?;
        drop(pause);
        let [first, second] = [first.await??, second.await??]
            .map(|lost| lost.map_or("it gets in".to_owned(), |error| error.to_string()));
        let told = format!("B: {first}; C: {second}");
        Ok((next == "B", told))
    }
}

/// The articles' own client, where it is imitated.
async fn others(stage: &Stage) -> Result<Vec<Side>, Failure> {
    #[cfg(feature = "etcd")]
    if stage.store == crate::Store::Etcd {
        let go = crate::go_mutex::GoMutex::new(stage.shared().await?.url());
        let (kept, lost) = tokio::try_join!(
            in_line(stage, go.clone(), "kept"),
            in_line(stage, go.orphaned(), "orphaned")
        )?;
        return Ok(vec![kept, lost]);
    }
    let _ = stage;
    Ok(Vec::new())
}

/// Returns whether a waiter's key exists after two TTLs.
#[cfg(feature = "etcd")]
async fn in_line(
    stage: &Stage,
    lock: crate::go_mutex::GoMutex,
    what: &str,
) -> Result<Side, Failure> {
    let (name, ttl) = (stage.name(what), stage.short_ttl());
    let holder = crate::go_mutex::GoMutex::new(stage.shared().await?.url());
    let (a, b) = (holder.session(ttl).await?, lock.session(ttl).await?);
    a.enqueue(&name).await?;
    let revision = b.enqueue(&name).await?;
    sleep(ttl * 2).await;
    let is_there = b.is_in_line(&name, revision).await?;
    a.close().await?;
    let happened = match is_there {
        true => "the waiter's key is there after two TTLs",
        false => "the waiter's key is gone after two TTLs",
    };
    Ok(Side::new(lock.label(), lock.nature(), is_there, happened))
}
