//! A process of `distlock run`.

use std::{path::Path, process::Stdio};

use lock_lab::Proxy;
use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid},
};
use tokio::process::{Child, Command};

use super::{child, record::Record, stage::Stage};

pub const NAME: &str = "the lock";

pub struct Holder {
    pub process: Child,
    pub network: Option<Proxy>,
}

impl Holder {
    /// Starts it. It waits without a limit.
    pub async fn start(stage: &Stage, log: &Path, record: &mut Record) -> Self {
        let (url, network) = stage.way().await;
        let this = std::env::current_exe().expect("this program");
        let process = Command::new(env!("CARGO_BIN_EXE_distlock"))
            .args(["run", NAME, "--ttl", "5s", "--on-lost", "term:300ms", "--store", &url])
            .args(["--log", "debug", "--"])
            .arg(this)
            .env(child::ROLE, "command")
            .env(child::LOG, log)
            .stdin(Stdio::null())
            .env("NO_COLOR", "1")
            .stderr(record.holder())
            .kill_on_drop(true)
            .spawn()
            .expect("a holder");
        Self { process, network }
    }

    pub fn pid(&self) -> Pid {
        let pid = self.process.id().expect("it was not waited for");
        Pid::from_raw(pid.cast_signed()).expect("a process id")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Whether it has a file locked for writing, once it has stopped.
    pub fn is_writing(&self) -> bool {
        // Waits until all of its threads have stopped.
        let at_rest = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(self.pid()), at_rest));
        let pid = self.pid().as_raw_pid();
        let locks = std::fs::read_to_string("/proc/locks").expect("the locks of files");
        let ours = format!(" WRITE {pid} ");
        locks.lines().any(|lock| lock.contains(" POSIX ") && lock.contains(&ours))
    }

    /// Its only child.
    pub fn supervisor(&self) -> Pid {
        let pid = self.pid().as_raw_pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.expect("its children");
        let child = children.split_whitespace().next().and_then(|child| child.parse().ok());
        Pid::from_raw(child.expect("a supervisor")).expect("a process id")
    }
}
