//! C15: a waiter that gives up only leaves the queue; order stays.

use std::{sync::Arc, time::Duration};

use distlock::Locks;
use lock_history::History;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use uuid::Uuid;

use crate::{
    Actor, Claim, Contestant, Distlock, Failure, Figure, Nature, Outcome, Player, Side, Stage,
    Trace,
    scenario::{has, joined, turn, until_line_within},
};

pub(super) const CLAIM: Claim = Claim {
    number: 15,
    title: "A waiter that gives up leaves the queue",
    claimed: "A waiter that gives up, without ever having held the lock, only leaves the queue; the \
              order of the others stays.",
    done: "A holds the lock, B, C, D and E queue up in this order, C gives up; then A releases, and \
           whoever gets in releases in turn. Beside it the process of C ends in line instead.",
    measured: "Whether C's place goes before its TTL, and in which order the others get in.",
    threshold: "Holds if C's place is gone within half of its TTL and the order is B, D, E, and if \
                the place of the client that died stays for as long.",
};

const WAITERS: [&str; 4] = ["B", "C", "D", "E"];
/// Index of the waiter that gives up.
const LEAVES: usize = 1;
/// Longer than a client needs to leave on a busy machine.
const TTL: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
enum Leaving {
    GivesUp,
    Dies,
}

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (first, second) =
        stage.pick((Leaving::GivesUp, Leaving::Dies), (Leaving::Dies, Leaving::GivesUp));
    let (first, second) = tokio::join!(play(stage, first, "first"), play(stage, second, "second"));
    let ((first, in_order), (second, also)) = (first?, second?);
    let sentence = Side::summaries([&first, &second]);
    let orders = u8::from(in_order) + u8::from(also);
    Ok(Outcome::holds_if(in_order && !also, sentence).sides([first, second]).figure(Figure::count(
        "lines that went on in order at once",
        orders.into(),
        "of 2",
    )))
}

/// Also returns whether the place was removed at once and the order stayed.
async fn play(stage: &Stage, how: Leaving, what: &str) -> Result<(Side, bool), Failure> {
    let label = match how {
        Leaving::GivesUp => "distlock, a waiter gives up",
        Leaving::Dies => "distlock, a waiter dies",
    };
    let (name, trace) = (stage.name(what), stage.trace(label));
    let (lock, operator) = (stage.distlock().await?, stage.connect().await?);
    let line = Line { name, trace, lock, operator };
    let (left, order) = line.play(how).await?;
    let in_order = left && order == ["B", "D", "E"];
    let happened = match left {
        true => format!("C's place is gone, and the others get in as {}", order.join(", ")),
        false => format!("C's place is still there after {} s", (TTL / 2).as_secs()),
    };
    let side = Side::new(label, Nature::Distlock, in_order, happened)
        .evidence(format!("the TTL is {} s", TTL.as_secs()));
    let history: History = line.trace.history();
    Ok((side.played(history)?, in_order))
}

struct Line {
    name: String,
    trace: Trace,
    lock: Distlock,
    operator: Locks,
}

impl Line {
    /// Returns whether C's place was removed, and the order in which the others entered.
    async fn play(&self, how: Leaving) -> Result<(bool, Vec<&'static str>), Failure> {
        let entry = self.trace.client("A").asks(&self.name);
        let guard = self.operator.lock(&self.name)?.ttl(TTL).acquire().await?;
        entry.granted(Some(guard.token().value()));
        let (tell, mut got_in) = mpsc::unbounded_channel();
        let (mut others, mut leaver) = (JoinSet::new(), None);
        for (number, who) in WAITERS.into_iter().enumerate() {
            let asking = self.trace.client(who).asks(&self.name);
            if number == LEAVES {
                leaver = Some((self.leaver(number + 1).await?, asking));
                continue;
            }
            let (client, name, tell) = (self.lock.client().await?, self.name.clone(), tell.clone());
            others.spawn(turn(client, name, TTL, (asking, who), tell));
            joined(&self.operator, &self.name, number + 1).await?;
        }
        let (leaver, asking) = leaver.ok_or("nobody leaves")?;
        let place = leaver.place;
        let _home = leaver.leave(how);
        asking.ended(if matches!(how, Leaving::Dies) { "died in line" } else { "gave up" });
        let gone = |line: &[distlock::Entry]| !has(line, place);
        let left = until_line_within(&self.operator, &self.name, TTL / 2, gone).await?.is_some();
        entry.releasing();
        guard.release().await?;
        entry.released();
        if left {
            while let Some(turn) = others.join_next().await {
                turn??.map_or(Ok(()), Err)?;
            }
        }
        got_in.close();
        let mut order = Vec::new();
        while let Some(who) = got_in.recv().await {
            order.push(who);
        }
        Ok((left, order))
    }

    /// Puts C into the queue, behind this many others.
    async fn leaver(&self, before: usize) -> Result<Leaver, Failure> {
        let home = Actor::start("C")?;
        let (client, name) = (self.lock.client_in(&home).await?, self.name.clone());
        let (give_up, asked) = oneshot::channel::<()>();
        let player = client.clone();
        let waits = home.run(async move {
            tokio::select! {
                _ = player.acquire(&name, TTL, PATIENCE) => {}
                _ = asked => {}
            }
        });
        let place = tokio::select! {
            place = joined(&self.operator, &self.name, before) => place?,
            _ = waits => return Err("C does not wait".into()),
        };
        Ok(Leaver { home, client, give_up, place })
    }
}

/// C in the queue.
struct Leaver {
    home: Actor,
    client: Arc<dyn Player>,
    give_up: oneshot::Sender<()>,
    place: Uuid,
}

impl Leaver {
    /// Returns the client's process if it lives on.
    fn leave(self, how: Leaving) -> Option<(Actor, Arc<dyn Player>)> {
        match how {
            Leaving::GivesUp => {
                // Fails only if C no longer waits.
                let _ = self.give_up.send(());
                Some((self.home, self.client))
            }
            Leaving::Dies => {
                self.home.kill((self.client, self.give_up));
                None
            }
        }
    }
}
