//! A server's counts of its clients' requests.

use std::time::Duration;

use lock_lab::{AnyServer, Counters};
use tokio::time::sleep;

use crate::{Failure, Ground, Nature, Stage, Store};

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

/// Returns the server's counters so far.
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

/// Waits until the server has noticed that the closed clients are gone.
pub(crate) async fn until_idle(
    store: Store,
    ground: &Ground,
    idle: (u64, u64),
) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        if lasting(store, &counters(ground).await?) <= idle {
            break;
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Returns the number of connections to the server, and of its watches for them.
pub(crate) fn lasting(store: Store, now: &Counters) -> (u64, u64) {
    match store {
        Store::Redis => (now.get("clients").saturating_sub(1), now.get("pubsub_channels")),
        Store::Etcd => (now.get("watch_streams"), now.get("watchers")),
        Store::ZooKeeper => (now.get("connections").saturating_sub(1), now.get("watches")),
        _ => (now.get("connections"), 0),
    }
}
