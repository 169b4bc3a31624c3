//! Processes of the command that no signal reaches.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::Command,
};

use super::{loss::revoke, run::until};
use crate::place::{Place, Process, lives};

/// A group of processes that the kernel does not run. They wait in the kernel (state D), as for a
/// disk that does not answer, and SIGKILL ends them only afterwards.
struct Freezer {
    /// In a hierarchy of its own, whatever else the machine uses.
    mount: tempfile::TempDir,
    group: PathBuf,
}

impl Freezer {
    fn of(pid: &str) -> Self {
        let mount = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("mount");
        command.args(["-t", "cgroup", "-o", "freezer", "distlock"]).arg(mount.path());
        assert!(command.status().expect("mount").success(), "this test needs root");
        let group = mount.path().join(format!("distlock-{pid}"));
        fs::create_dir(&group).expect("a group");
        let freezer = Self { mount, group };
        freezer.set("cgroup.procs", pid);
        freezer.set("freezer.state", "FROZEN");
        let pid = pid.parse().expect("a process");
        until("it is frozen", || lock_lab::state_of(pid) == Some('D'));
        freezer
    }

    fn thaw(&self) {
        self.set("freezer.state", "THAWED");
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.group.join(file), value).expect("it takes it");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        // While it has processes, it stays.
        until("the group is empty", || fs::remove_dir(&self.group).is_ok());
        let _ = Command::new("umount").arg(self.mount.path()).status();
    }
}

#[test]
fn a_process_that_waits_in_the_kernel_is_told_and_awaited() {
    let place = Place::new();
    let mut run = place.command(&["run", "x", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let (told, stderr) = std::io::pipe().expect("a pipe");
    run.stderr(stderr);
    let mut run = Process::of(run);
    let pid = run.line();
    let freezer = Freezer::of(&pid);
    revoke(&place);
    let mut told = BufReader::new(told).lines().map(|line| line.expect("text"));
    let stuck = told.next().expect("a word");
    assert!(
        stuck.contains("1 processes of the command were killed and wait in the kernel"),
        "{stuck}"
    );
    assert!(lives(&pid) && run.try_end().is_none(), "no signal reaches it");
    assert!(!place.is_busy("x"), "it is lost all the same");
    freezer.thaw();
    assert_eq!(run.end(), Some(79));
    assert!(!lives(&pid), "{pid} lives on");
}
