//! Programs in two terminals, of which the second one waits for the first.

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

/// How long what must happen may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long something that must not happen is watched.
const MOMENT: Duration = Duration::from_millis(300);

/// How the first program is ended.
pub(crate) enum End<'a> {
    /// It waits for this file to go.
    File(&'a Path),
    /// As a supervisor ends it. Not as ctrl-c does: what a shell starts in the background ignores
    /// that, and so do the programs started by it.
    Terminate,
}

/// What the two terminals show.
pub(crate) struct Terminals {
    /// The first line of the first one.
    pub(crate) first: String,
    /// Whether the second one shows nothing while the first one runs.
    pub(crate) waits: bool,
    /// The first line of the second one.
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

/// Starts the first program, then the second one, and ends the first one when the second one waits
/// for the name, or has shown something.
///
/// # Errors
///
/// If one ends without a word, or shows nothing for 30 s though nothing is in its way.
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
    // It holds a lock perhaps, and gives it back.
    if two.child.try_wait()?.is_none() {
        let _ = two.end(End::Terminate).await;
    }
    Ok(Terminals { first, waits, second })
}

/// The program `distlock`, if it is this one or stands near it.
pub(crate) fn distlock_program() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    let folders = this.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join("distlock")).find(|path| path.is_file())
}
