//! Processes of the program, and their store.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A store in a folder of its own, or on a server, and a bare environment.
pub struct Place {
    folder: TempDir,
    store: String,
}

/// A process that runs. A drop kills it.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = format!("sqlite:{}", folder.path().join("db").display());
        Self { folder, store }
    }

    pub fn on(store: String) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), store }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of its store.
    pub fn store(&self) -> &str {
        &self.store
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.prepare(Command::new(env!("CARGO_BIN_EXE_distlock")), arguments)
    }

    /// Another program, in the same environment.
    pub fn other(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        self.prepare(Command::new(program), arguments)
    }

    fn prepare(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("DISTLOCK_STORE", &self.store).stdin(Stdio::null());
        command
    }

    /// Runs it to its end. Returns its exit code, stdout and stderr.
    pub fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        said(&self.command(arguments).output().expect("it starts"))
    }

    /// Starts it with pipes for stdin and stdout.
    pub fn start(&self, arguments: &[&str]) -> Process {
        Process::of(self.command(arguments))
    }

    /// Starts a command under a lock, and returns when it has begun. It ends at a line.
    pub fn hold(&self, name: &str) -> Process {
        let mut run = self.start(&["run", name, "--", "sh", "-c", "echo; read line"]);
        run.line();
        run
    }

    /// Starts it like [`start`](Self::start), with no store in the environment.
    #[cfg(feature = "redis")]
    pub fn start_without_store(&self, arguments: &[&str]) -> Process {
        let mut command = self.command(arguments);
        command.env_remove("DISTLOCK_STORE");
        Process::of(command)
    }

    /// The output of `show --json` for a lock.
    pub fn show(&self, name: &str) -> serde_json::Value {
        let (code, shown, error) = self.run(&["show", name, "--json"]);
        assert_eq!(code, Some(0), "{error}");
        serde_json::from_str(&shown).expect("JSON")
    }

    /// The names in use.
    pub fn names(&self) -> Vec<String> {
        let (code, names, error) = self.run(&["ls", "--json"]);
        assert_eq!(code, Some(0), "{error}");
        let names: serde_json::Value = serde_json::from_str(&names).expect("JSON");
        let names = names.as_array().expect("an array").iter();
        names.map(|lock| lock["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Looks until this many clients wait for a lock.
    pub fn await_waiters(&self, name: &str, number: usize) {
        self.await_entries(name, "waiters", number);
    }

    /// Looks until this many clients hold a lock.
    pub fn await_holders(&self, name: &str, number: usize) {
        self.await_entries(name, "holders", number);
    }

    fn await_entries(&self, name: &str, which: &str, number: usize) {
        let limit = 1000;
        let entries = || self.show(name)[which].as_array().map_or(0, Vec::len);
        assert!((0..limit).any(|_| entries() == number), "there were never {number} {which}");
    }

    pub fn is_busy(&self, name: &str) -> bool {
        match self.run(&["run", name, "--no-wait", "true"]) {
            (Some(75), ..) => true,
            (Some(0), ..) => false,
            other => panic!("{other:?}"),
        }
    }
}

impl Process {
    /// Starts a command with pipes for stdin and stdout.
    pub fn of(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its stdout"));
        Self { input: child.stdin.take(), child, output }
    }

    /// The next line of its stdout, without its end. Empty at the end of the output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Writes to its stdin.
    pub fn say(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open stdin");
        input.write_all(text.as_bytes()).expect("it listens");
    }

    pub fn close_stdin(&mut self) {
        self.input = None;
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("it runs");
    }

    /// The exit code, if it has ended.
    pub fn try_end(&mut self) -> Option<i32> {
        self.child.try_wait().expect("a child").and_then(|status| status.code())
    }

    /// Waits for its end. Returns the exit code, as a shell shows it: 128+n after signal n.
    pub fn end(self) -> Option<i32> {
        let status = self.status();
        status.code().or_else(|| Some(128 + status.signal()?))
    }

    /// Waits for its end.
    pub fn status(mut self) -> ExitStatus {
        self.child.wait().expect("its end")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Whether a process with this number exists.
pub fn lives(pid: &str) -> bool {
    !lock_lab::is_gone(pid.parse().expect("a process id"))
}
