//! C18: ephemeral sequential znodes, each watched by the next one.

#[cfg(feature = "zookeeper")]
use crate::Store;
use crate::{Claim, Failure, Outcome, Stage};

pub(super) const CLAIM: Claim = Claim {
    number: 18,
    title: "Ephemeral sequential znodes",
    claimed: "In ZooKeeper each client has an ephemeral sequential znode, the lowest holds the lock, \
              everyone else watches the znode just before its own, and a lost session deletes the \
              znode.",
    done: "Four clients queue up, and a bare client lists their znodes. It deletes the last one's \
           node and then one in the middle of the queue, and the server counts whom it tells; then \
           the holder is killed. Beside it one node that everybody watches.",
    measured: "How many znodes are ephemeral and have a sequence number, how many more clients are \
               told of the end of the node in the middle than of the last one, and whether the dead \
               holder's node goes.",
    threshold: "Holds if all four are, if exactly one more is told, the one behind it, and if the node \
                goes with its session and the next one holds.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    match stage.store {
        #[cfg(feature = "zookeeper")]
        Store::ZooKeeper => crate::scenario::znodes(stage).await,
        _ => Ok(Outcome::cannot_be_asked("it has no znodes")),
    }
}
