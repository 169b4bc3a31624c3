//! C22: the command line waits for its turn.

use async_trait::async_trait;
use tokio::process::Command;

use crate::{
    Claim, Experiment, Failure, Nature, Outcome, Side, Stage, Store,
    scenario::two_clients,
    terminal::{End, Terminals, distlock_program, two_terminals},
};

/// C22.
pub(crate) struct CommandLine;

const CLAIM: Claim = Claim {
    number: 22,
    title: "The command line takes turns",
    claimed: "etcdctl lock NAME COMMAND and etcdctl elect NAME VALUE take turns: a second terminal \
              waits until the first one ends.",
    done: "Two terminals run a command under one name: with etcdctl where the store is etcd, with \
           the program distlock where it stands beside this one, else with two clients of the \
           library. In the control the second one has another name.",
    measured: "Whether the second command starts while the first one runs.",
    threshold: "Holds if it starts only after the first one has ended.",
};

#[async_trait]
impl Experiment for CommandLine {
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
    let happened = match seen.waits {
        true => "the second terminal waits until the first one ends",
        false => "the second terminal does not wait",
    };
    Side::new(label, nature, seen.waits, happened)
        .evidence(format!("the first terminal shows: {}", seen.first))
        .evidence(format!("the second terminal shows: {}", seen.second))
}

#[cfg(feature = "etcd")]
async fn etcdctl(stage: &Stage) -> Result<Vec<Side>, Failure> {
    let url = stage.shared().await?.url();
    let Some(program) = crate::etcdctl::Etcdctl::find(&url)? else {
        let side = Side::new("etcdctl lock", Nature::Program, true, crate::etcdctl::INSTALL);
        return Ok(vec![side]);
    };
    let operator = stage.connect().await?;
    let folder = tempfile::tempdir()?;
    let (file, script) = first_script(folder.path()).await?;
    let [one, two] = names(stage, "etcdctl-lock");
    let first = program.command(&["lock", &one, "--", "sh", "-c", &script]);
    let second = program.command(&["lock", &two, "--", "echo", "the second command runs"]);
    let lock = two_terminals((first, second), &operator, &one, End::File(&file)).await?;
    let [one, two] = names(stage, "etcdctl-elect");
    let first = program.command(&["elect", &one, "first"]);
    let second = program.command(&["elect", &two, "second"]);
    let elect = two_terminals((first, second), &operator, &one, End::Terminate).await?;
    Ok(vec![
        side("etcdctl lock NAME COMMAND", Nature::Program, lock),
        side("etcdctl elect NAME VALUE", Nature::Program, elect),
    ])
}

#[cfg(not(feature = "etcd"))]
async fn etcdctl(_stage: &Stage) -> Result<Vec<Side>, Failure> {
    Ok(Vec::new())
}

async fn ours(stage: &Stage) -> Result<Side, Failure> {
    let names = names(stage, "distlock");
    let operator = stage.connect().await?;
    let program = distlock_program().filter(|_| stage.store != Store::Memory);
    let Some(program) = program else { return library(stage, &names).await };
    let folder = tempfile::tempdir()?;
    let (file, script) = first_script(folder.path()).await?;
    let url = stage.shared().await?.url();
    let run = |name: &str, command: &[&str]| {
        let mut run = Command::new(&program);
        // Not among the arguments: other users of the machine would see a password.
        run.env("DISTLOCK_STORE", &url).args(["run", name, "--"]).args(command);
        run
    };
    let first = run(&names[0], &["sh", "-c", &script]);
    let second = run(&names[1], &["echo", "the second command runs"]);
    let seen = two_terminals((first, second), &operator, &names[0], End::File(&file)).await?;
    Ok(side("distlock run NAME -- COMMAND", Nature::Distlock, seen))
}

/// Two clients of the library, in place of the program.
async fn library(stage: &Stage, names: &[String; 2]) -> Result<Side, Failure> {
    let waits = two_clients(stage, names).await?;
    let happened = match waits {
        true => "the second client waits until the first one ends",
        false => "the second client does not wait",
    };
    Ok(Side::new("distlock, the library", Nature::Distlock, waits, happened)
        .evidence("the program distlock does not stand beside this one, or cannot reach it"))
}

/// A command that reports that it runs, and ends when a file is deleted.
async fn first_script(folder: &std::path::Path) -> Result<(std::path::PathBuf, String), Failure> {
    let file = folder.join("running");
    tokio::fs::write(&file, b"").await?;
    let script = format!(
        "echo the first command runs; while [ -e '{}' ]; do sleep 0.02; done",
        file.display(),
    );
    Ok((file, script))
}
