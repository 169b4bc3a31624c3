//! Programs in two terminals. The second one waits for the first.

use std::{path::Path, process::Stdio, time::Duration};

use distlock::Locks;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    Failure, Nature, Outcome, Side, Stage, Store, program,
    scenario::{two_clients, until_line},
};

/// Limit for expected events on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time of observation for an event that must not happen.
const MOMENT: Duration = Duration::from_millis(300);

/// The end of the first program.
pub(crate) enum End<'a> {
    /// It waits until this file is deleted.
    File(&'a Path),
    /// As a supervisor ends it. Not as ctrl-c: programs that a shell starts in the background
    /// ignore that, and so do their children.
    Terminate,
}

/// The first lines of two terminals.
struct Terminals {
    first: String,
    /// Whether the second terminal shows nothing while the first program runs.
    waits: bool,
    second: String,
}

/// A running program whose lines are read. A drop kills it.
pub(crate) struct Terminal {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().ok_or("a program without output")?;
        Ok(Self { child, lines: BufReader::new(stdout).lines() })
    }

    /// The next line; `None` if the program has ended.
    pub(crate) async fn next_line(&mut self) -> Result<Option<String>, Failure> {
        Ok(self.lines.next_line().await?)
    }

    /// The next line, which comes soon.
    pub(crate) async fn line(&mut self) -> Result<String, Failure> {
        let line = timeout(PATIENCE, self.next_line()).await??;
        Ok(line.ok_or("the program has ended without a word")?)
    }

    pub(crate) async fn ended(&mut self) -> Result<(), Failure> {
        Ok(self.child.wait().await.map(drop)?)
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(kill_process(pid.ok_or("the program has ended already")?, signal)?)
    }

    async fn end(&mut self, end: End<'_>) -> Result<(), Failure> {
        match end {
            End::File(file) => std::fs::remove_file(file)?,
            End::Terminate => self.signal(Signal::TERM)?,
        }
        timeout(PATIENCE, self.ended()).await?
    }
}

/// Starts the first program, then the second one. Ends the first one after the second one waits for
/// the name, or has shown something.
///
/// Fails if a program ends without output, or shows nothing for 30 s although nothing blocks it.
async fn two_terminals(
    (first, second): (Command, Command),
    operator: &Locks,
    name: &str,
    end: End<'_>,
) -> Result<Terminals, Failure> {
    let mut one = Terminal::start(first)?;
    let first = one.line().await?;
    let mut two = Terminal::start(second)?;
    let early = tokio::select! {
        line = two.line() => Some(line?),
        line = until_line(operator, name, |line| line.len() > 1) => {
            line?;
            timeout(MOMENT, two.line()).await.ok().transpose()?
        }
    };
    one.end(end).await?;
    let waits = early.is_none();
    let second = match early {
        Some(line) => line,
        None => two.line().await?,
    };
    // It may hold a lock, and gives it back.
    if two.child.try_wait()?.is_none() {
        let _ = two.end(End::Terminate).await;
    }
    Ok(Terminals { first, waits, second })
}

impl Terminals {
    /// Whether the second terminal waits for the first, and then shows a line of its own.
    fn side(&self, label: &str, nature: Nature) -> Side {
        let well = self.waits && self.first != self.second;
        let happened = match self.waits {
            true => "the second terminal shows its line when the first one has ended",
            false => "the second terminal does not wait",
        };
        Side::new(label, nature, well, happened)
            .evidence(format!("the first terminal shows: {}", self.first))
            .evidence(format!("the second terminal shows: {}", self.second))
    }
}

/// Two terminals with one name, or with two in the control. `command` makes the command of each from
/// its name and its place.
pub(crate) async fn turns(
    stage: &Stage,
    label: &str,
    nature: Nature,
    command: impl Fn(&str, usize) -> Command,
    end: End<'_>,
) -> Result<Side, Failure> {
    let names = names(stage, label);
    let commands = (command(&names[0], 0), command(&names[1], 1));
    let seen = two_terminals(commands, &stage.connect().await?, &names[0], end).await?;
    Ok(seen.side(label, nature))
}

/// Same as [`turns`], with the program `distlock`, and with two clients of the library where that
/// program is not there, or cannot reach the store.
pub(crate) async fn turns_of_distlock(
    stage: &Stage,
    label: &str,
    arguments: impl Fn(&str, usize) -> Vec<String>,
    end: End<'_>,
) -> Result<Side, Failure> {
    let Some(program) = program::find().filter(|_| stage.store != Store::Memory) else {
        let waits = two_clients(stage, &names(stage, label)).await?;
        let happened = match waits {
            true => "the second client waits until the first one ends",
            false => "the second client does not wait",
        };
        return Ok(Side::new("distlock, the library", Nature::Distlock, waits, happened)
            .evidence("the program distlock does not stand beside this one, or cannot reach it"));
    };
    let url = stage.shared().await?.url();
    let command = |name: &str, place| {
        let mut command = program::on(&program, &url);
        command.args(arguments(name, place));
        command
    };
    turns(stage, label, Nature::Distlock, command, end).await
}

/// The names for both terminals: the same, or two different ones in the control.
fn names(stage: &Stage, label: &str) -> [String; 2] {
    let name = stage.name(label).replace(['/', ' '], "-");
    let other = format!("{name}-other");
    [name.clone(), stage.pick(name, other)]
}

/// The verdict: each second terminal has to wait.
pub(crate) fn verdict(sides: Vec<Side>) -> Outcome {
    let waits = sides.iter().all(|side| side.well);
    Outcome::holds_if(waits, Side::summaries(&sides)).sides(sides)
}
