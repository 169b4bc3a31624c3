//! C22: the command line waits for its turn.

use crate::{
    Claim, Failure, Outcome, Side, Stage,
    terminal::{self, End},
};

pub(super) const CLAIM: Claim = Claim {
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

const SECOND: &str = "the second command runs";

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let mut sides = etcdctl(stage).await?;
    let (_folder, file, script) = first_script()?;
    let arguments = |name: &str, place: usize| {
        let (program, rest) =
            if place == 0 { ("sh", ["-c", &script]) } else { ("echo", ["", SECOND]) };
        ["run", name, "--", program].into_iter().chain(rest).map(str::to_owned).collect()
    };
    let label = "distlock run NAME -- COMMAND";
    sides.push(terminal::turns_of_distlock(stage, label, arguments, End::File(&file)).await?);
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
    let Some(program) = Etcdctl::find(&stage.shared().await?.url())? else {
        return Ok(vec![Side::new("etcdctl lock", Program, true, INSTALL)]);
    };
    let (_folder, file, script) = first_script()?;
    let lock = |name: &str, place| match place {
        0 => program.command(&["lock", name, "--", "sh", "-c", &script]),
        _ => program.command(&["lock", name, "--", "echo", SECOND]),
    };
    let elect = |name: &str, place| program.command(&["elect", name, ["first", "second"][place]]);
    Ok(vec![
        terminal::turns(stage, "etcdctl lock NAME COMMAND", Program, lock, End::File(&file))
            .await?,
        terminal::turns(stage, "etcdctl elect NAME VALUE", Program, elect, End::Terminate).await?,
    ])
}

#[cfg(not(feature = "etcd"))]
async fn etcdctl(_stage: &Stage) -> Result<Vec<Side>, Failure> {
    Ok(Vec::new())
}

/// A command that reports that it runs, and ends when the file is deleted.
fn first_script() -> Result<(tempfile::TempDir, std::path::PathBuf, String), Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("running");
    std::fs::write(&file, b"")?;
    let script = format!(
        "echo the first command runs; while [ -e '{}' ]; do sleep 0.02; done",
        file.display(),
    );
    Ok((folder, file, script))
}
