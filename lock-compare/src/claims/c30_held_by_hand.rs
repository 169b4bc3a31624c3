//! C30: a lock without a command.

use crate::{
    Claim, Failure, Outcome, Side, Stage,
    terminal::{self, End},
};

pub(super) const CLAIM: Claim = Claim {
    number: 30,
    title: "A lock without a command",
    claimed: "etcdctl lock NAME without a command prints its key and holds the lock until it is \
              ended; a second terminal then prints its own.",
    done: "Two terminals hold one name by hand: with etcdctl where the store is etcd, with \
           distlock hold where that program stands beside this one, else with two clients of the \
           library. In the control the second one has another name.",
    measured: "Whether the second terminal prints anything while the first one holds.",
    threshold: "Holds if it prints its own key only after the first one has ended.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let mut sides = etcdctl(stage).await?;
    let hold = |name: &str, _| vec!["hold".to_owned(), name.to_owned()];
    let ours = terminal::turns_of_distlock(stage, "distlock hold NAME", hold, End::Terminate);
    sides.push(ours.await?);
    Ok(terminal::verdict(sides))
}

#[cfg(feature = "etcd")]
async fn etcdctl(stage: &Stage) -> Result<Vec<Side>, Failure> {
    use crate::{
        Nature::Program,
        etcdctl::{Etcdctl, INSTALL},
    };

    if stage.store != crate::Store::Etcd {
        return Ok(Vec::new());
    }
    let label = "etcdctl lock NAME";
    let Some(program) = Etcdctl::find(&stage.shared().await?.url())? else {
        return Ok(vec![Side::new(label, Program, true, INSTALL)]);
    };
    let lock = |name: &str, _| program.command(&["lock", name]);
    Ok(vec![terminal::turns(stage, label, Program, lock, End::Terminate).await?])
}

#[cfg(not(feature = "etcd"))]
async fn etcdctl(_stage: &Stage) -> Result<Vec<Side>, Failure> {
    Ok(Vec::new())
}
