//! C30: a lock without a command.

use async_trait::async_trait;
use tokio::process::Command;

use crate::{
    Claim, Experiment, Failure, Nature, Outcome, Side, Stage, Store,
    scenario::two_clients,
    terminal::{End, Terminals, distlock_program, two_terminals},
};

/// C30.
pub(crate) struct HeldByHand;

const CLAIM: Claim = Claim {
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

#[async_trait]
impl Experiment for HeldByHand {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let mut sides = Vec::new();
        if stage.store == Store::Etcd {
            sides.extend(etcdctl(stage).await?);
        }
        sides.push(ours(stage).await?);
        let waits = sides.iter().all(|side| side.well);
        Ok(Outcome::holds_if(waits, Side::summaries(&sides)).sides(sides))
    }
}

/// The names for both terminals: the same, or two different ones in the control.
fn names(stage: &Stage, what: &str) -> [String; 2] {
    let name = stage.name(what).replace('/', "-");
    let other = format!("{name}-other");
    [name.clone(), stage.pick(name, other)]
}

fn side(label: &str, nature: Nature, seen: Terminals) -> Side {
    let own = seen.first != seen.second;
    let happened = match seen.waits {
        true => "the second terminal prints its own key when the first one is ended",
        false => "the second terminal does not wait",
    };
    Side::new(label, nature, seen.waits && own, happened)
        .evidence(format!("the first terminal prints: {}", seen.first))
        .evidence(format!("the second terminal prints: {}", seen.second))
}

#[cfg(feature = "etcd")]
async fn etcdctl(stage: &Stage) -> Result<Option<Side>, Failure> {
    let url = stage.shared().await?.url();
    let Some(program) = crate::etcdctl::Etcdctl::find(&url)? else {
        let missing = crate::etcdctl::INSTALL;
        return Ok(Some(Side::new("etcdctl lock NAME", Nature::Program, true, missing)));
    };
    let [one, two] = names(stage, "etcdctl");
    let commands = (program.command(&["lock", &one]), program.command(&["lock", &two]));
    let operator = stage.connect().await?;
    let seen = two_terminals(commands, &operator, &one, End::Terminate).await?;
    Ok(Some(side("etcdctl lock NAME", Nature::Program, seen)))
}

#[cfg(not(feature = "etcd"))]
async fn etcdctl(_stage: &Stage) -> Result<Option<Side>, Failure> {
    Ok(None)
}

async fn ours(stage: &Stage) -> Result<Side, Failure> {
    let names = names(stage, "distlock");
    let program = distlock_program().filter(|_| stage.store != Store::Memory);
    let Some(program) = program else {
        let waits = two_clients(stage, &names).await?;
        let happened = match waits {
            true => "the second client gets the lock when the first one leaves",
            false => "the second client does not wait",
        };
        return Ok(Side::new("distlock, the library", Nature::Distlock, waits, happened)
            .evidence("the program distlock does not stand beside this one, or cannot reach it"));
    };
    let url = stage.shared().await?.url();
    let [first, second] = names.each_ref().map(|name| {
        let mut hold = Command::new(&program);
        // Not among the arguments: other users of the machine would see a password.
        hold.env("DISTLOCK_STORE", &url).args(["hold", name]);
        hold
    });
    let operator = stage.connect().await?;
    let seen = two_terminals((first, second), &operator, &names[0], End::Terminate).await?;
    Ok(side("distlock hold NAME", Nature::Distlock, seen))
}
