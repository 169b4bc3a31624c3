//! Programs in two terminals. The second one waits for the first.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use distlock::Locks;
use tokio::{
    fs,
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{Failure, scenario::until_line};

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

/// The output of the two terminals.
pub(crate) struct Terminals {
    /// First line of the first terminal.
    pub(crate) first: String,
    /// Whether the second terminal shows nothing while the first program runs.
    pub(crate) waits: bool,
    /// First line of the second terminal.
    pub(crate) second: String,
}

struct Terminal {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Terminal {
    fn start(mut command: Command) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().ok_or("a program without output")?;
        Ok(Self { child, lines: BufReader::new(stdout).lines() })
    }

    async fn line(&mut self) -> Result<String, Failure> {
        let line = timeout(PATIENCE, self.lines.next_line()).await??;
        Ok(line.ok_or("the program has ended without a word")?)
    }

    async fn end(&mut self, end: End<'_>) -> Result<(), Failure> {
        match end {
            End::File(file) => fs::remove_file(file).await?,
            End::Terminate => {
                let process = self.child.id().ok_or("the program has ended already")?;
                Command::new("kill").arg("-TERM").arg(process.to_string()).status().await?;
            }
        }
        Ok(timeout(PATIENCE, self.child.wait()).await?.map(drop)?)
    }
}

/// Starts the first program, then the second one. Ends the first one after the second one waits for
/// the name, or has shown something.
///
/// Fails if a program ends without output, or shows nothing for 30 s although nothing blocks it.
pub(crate) async fn two_terminals(
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

/// Returns the program `distlock`, if it is this one or in a folder near it.
pub(crate) fn distlock_program() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    let folders = this.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join("distlock")).find(|path| path.is_file())
}
