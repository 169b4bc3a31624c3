//! Processes of `distlock`, in a bare environment.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A folder of its own.
pub struct Place(TempDir);

/// The output of a process.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

/// A process that runs. A drop kills it.
pub struct Running(Child);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// The URL of a file.
    pub fn file(&self) -> String {
        format!("sqlite:{}", self.0.path().join("locks.db").display())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_distlock"));
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.0.path());
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        let output = self.command(arguments).output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let code = output.status.code();
        Answer { code, out: text(output.stdout), error: text(output.stderr) }
    }

    pub fn check(&self, arguments: &[&str]) -> Answer {
        self.run(&[&["check"], arguments].concat())
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running(self.command(arguments).stdout(Stdio::null()).spawn().expect("it starts"))
    }

    /// The exit code of a process without a reader of its stdout.
    pub fn unread(&self, arguments: &[&str]) -> Option<i32> {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        self.command(arguments).stdout(writer).status().expect("it starts").code()
    }

    /// The names in use.
    pub fn names(&self, store: &str) -> Vec<String> {
        let shown = self.run(&["ls", "--json", "--store", store]);
        let shown: serde_json::Value = serde_json::from_str(&shown.out).expect("JSON");
        let names = shown.as_array().expect("an array").iter();
        names.map(|lock| lock["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Another process that holds a lock until it is released.
    pub fn hold(&self, store: &str, name: &str) -> Running {
        let script = "trap 'exit 0' TERM; echo; while :; do sleep 1; done";
        let mut command =
            self.command(&["run", name, "--store", store, "--no-wait", "--", "sh", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its stdout"))
            .read_line(&mut line)
            .expect("a line");
        Running(child)
    }
}

impl Answer {
    /// The checks with this verdict, in order.
    pub fn verdicts(&self, verdict: &str) -> Vec<String> {
        let reports: serde_json::Value = serde_json::from_str(&self.out).expect("JSON");
        let mut found = Vec::new();
        for promise in reports[0]["promises"].as_array().expect("promises") {
            for check in promise["checks"].as_array().expect("checks") {
                if check["verdict"] == verdict {
                    let [promise, check] = [&promise["name"], &check["name"]];
                    let words = [promise, check].map(|name| name.as_str().expect("a name"));
                    found.push(words.join(": "));
                }
            }
        }
        found.sort();
        found
    }
}

impl Running {
    /// Asks it to end, and returns the exit code.
    pub fn release(&mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.0.id().cast_signed()).expect("a process id");
        kill_process(pid, Signal::TERM).expect("it runs");
        self.0.wait().expect("a child").code()
    }

    pub fn try_wait(&mut self) -> Option<i32> {
        self.0.try_wait().expect("a child").and_then(|status| status.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
