//! A server's counts of its clients' requests.

use std::time::Duration;

use lock_lab::{AnyServer, Counters};
use tokio::time::sleep;

use crate::{
    Contestant, Distlock, Failure, Give, Ground, Nature, Outcome, Printed, Stage, Store, Take, keys,
};

const LOOK: Duration = Duration::from_millis(50);
/// A connection that stays open longer does not belong to this experiment.
const LOOKS: usize = 60;

/// Starts a private server for the experiment, with few renewals that disturb the counts. `None` if
/// the store has no server that counts.
pub(crate) async fn counting(stage: &Stage) -> Result<Option<Ground>, Failure> {
    Ok(match stage.store {
        store if store.is_embedded() => None,
        Store::ZooKeeper => {
            // Sessions may then be longer than any queue takes.
            let tick = Duration::from_secs(2);
            let server = lock_lab::ZooKeeper::builder().tick(tick).start().await?;
            Some(Ground::Private(Box::new(AnyServer::ZooKeeper(server))))
        }
        _ => Some(stage.own().await?),
    })
}

pub(crate) async fn counters(ground: &Ground) -> Result<Counters, Failure> {
    let server = ground.server().ok_or("only a server of our own is counted")?;
    Ok(server.counters().await?)
}

/// Requests of clients, without renewals and without the requests for the counters. In a database
/// they are statements.
pub(crate) fn requests(store: Store, nature: Nature, since: &Counters) -> u64 {
    let sum = |what: &[&str]| what.iter().map(|what| since.get(what)).sum();
    match store {
        Store::Etcd => sum(&["msg.Txn", "msg.Range", "msg.Put", "msg.DeleteRange", "msg.Watch"]),
        // The commands of scripts are counted, too. distlock sends only scripts.
        Store::Redis if nature == Nature::Distlock => sum(&["cmd.evalsha", "cmd.eval"]),
        Store::Redis => {
            let scripts = since.get("cmd.evalsha") + since.get("cmd.eval");
            scripts + since.get("cmd.set") + since.get("cmd.setnx")
        }
        // One packet requests the counters.
        Store::ZooKeeper => since.get("packets_received").saturating_sub(1),
        _ => {
            sum(&["cmd.select", "cmd.insert", "cmd.update", "cmd.delete", "cmd.with"])
                + sum(&["cmd.begin", "cmd.start", "cmd.commit", "cmd.set_option", "cmd.set"])
        }
    }
}

/// distlock's queue and clients that ask again and again, on a server that counts.
pub(crate) struct Rivals {
    pub ground: Ground,
    /// The queue, and those that ask; the other way round in a control run.
    pub locks: [Box<dyn Contestant>; 2],
    store: Store,
    /// What stays at the server before any client comes.
    idle: (u64, u64),
    pause: Duration,
}

impl Rivals {
    /// `None` if the store has no server that counts.
    pub(crate) async fn of(
        stage: &Stage,
        give: Give,
        pause: Duration,
    ) -> Result<Option<Self>, Failure> {
        let Some(ground) = counting(stage).await? else { return Ok(None) };
        let space = keys::of(stage.store, &ground.url()).await?;
        let polling = Printed::new(space, Take::OneStep, give).polling(pause);
        let mut locks: [Box<dyn Contestant>; 2] =
            [Box::new(Distlock::new(ground.url())), Box::new(polling)];
        if stage.is_swapped() {
            locks.reverse();
        }
        let idle = lasting(stage.store, &counters(&ground).await?);
        Ok(Some(Self { ground, locks, store: stage.store, idle, pause }))
    }

    /// Waits until the server has noticed that the closed clients are gone.
    pub(crate) async fn until_idle(&self) -> Result<(), Failure> {
        for _ in 0..LOOKS {
            if lasting(self.store, &counters(&self.ground).await?) <= self.idle {
                break;
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The connections and the watches that the clients have now.
    pub(crate) fn stay(&self, now: &Counters) -> (u64, u64) {
        let now = lasting(self.store, now);
        (now.0.saturating_sub(self.idle.0), now.1.saturating_sub(self.idle.1))
    }

    pub(crate) fn label(&self, lock: &dyn Contestant) -> String {
        match lock.nature() {
            Nature::Distlock => "distlock's queue".into(),
            _ => format!("asking every {} ms", self.pause.as_millis()),
        }
    }

    /// The verdict, unless clients of the store have nothing to watch.
    pub(crate) fn judge(&self, seen: bool, words: String) -> Outcome {
        match self.store {
            Store::MySql => Outcome::cannot_be_asked(format!(
                "MySQL tells no client of a change, so distlock polls there, too: {words}"
            )),
            _ => Outcome::holds_if(seen, words),
        }
    }
}

/// Returns the number of connections to the server, and of its watches for them.
fn lasting(store: Store, now: &Counters) -> (u64, u64) {
    match store {
        Store::Redis => (now.get("clients").saturating_sub(1), now.get("pubsub_channels")),
        Store::Etcd => (now.get("watch_streams"), now.get("watchers")),
        Store::ZooKeeper => (now.get("connections").saturating_sub(1), now.get("watches")),
        _ => (now.get("connections"), 0),
    }
}
