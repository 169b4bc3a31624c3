//! Processes of the command that no signal reaches, or that `/proc` does not show.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::chown,
    path::PathBuf,
    process::Command,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    loss::revoke,
    run::{child, until},
};
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

/// A user without rights.
const NOBODY: u32 = 65_534;

/// Runs the program as that user, who sees no process of others and none that may not be read, and
/// who may become another user. The mounts end with the last process that sees them.
const HIDING: &str = r#"
folder=$1 program=$2 before=$3 && shift 3 &&
mount -t proc -o hidepid=2 proc /proc &&
mount -t tmpfs -o mode=755 tmpfs "$folder" &&
mkfifo -m 666 "$folder/begun" "$folder/number" &&
install -m 711 "$(command -v sleep)" "$folder/sleep" &&
touch "$folder/distlock" && mount --bind "$program" "$folder/distlock" &&
exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +setuid \
    --ambient-caps +setuid sh -c "$before" "$folder" "$@"
"#;

/// What runs before: one that is hidden, whose number it prints, and one that ends when the command
/// has begun, and leaves a hidden one in a session of its own.
const BEFORE: &str = r#"
"$0/sleep" 60 & echo $!
{ read line <"$0/begun"; setsid "$0/sleep" 60 & echo $! >"$0/number"; } &
exec "$0/distlock" run x "$@"
"#;

/// The command. When two processes of it are hidden, one of another user and one whose program may
/// not be read, it prints the number of the one that was not there before, of these and its own.
const HIDDEN: &str = r#"
echo >"$0/begun"; read orphan <"$0/number"
setpriv --reuid 1 sleep 60 & other=$!
setsid "$0/sleep" 60 & secret=$!
while [ -e /proc/$other ] || [ -e /proc/$secret ]; do sleep 0.02; done
echo $orphan; echo $other; echo $secret; echo $$
read line
"#;

/// And what ran before stays, with what it has started.
#[test]
fn processes_that_are_hidden_are_killed_or_told() {
    for (is_lost, code) in [(true, 79), (false, 0)] {
        let place = Place::new();
        chown(place.path(), Some(NOBODY), None).expect("this test needs root");
        let folder = place.path().join("programs").display().to_string();
        fs::create_dir(&folder).expect("a folder");
        let program = env!("CARGO_BIN_EXE_distlock");
        let surroundings = ["--mount", "sh", "-c", HIDING, "sh", &folder, program, BEFORE];
        let command = ["--on-lost", "kill", "--", "sh", "-c", HIDDEN, &folder];
        let mut run = place.other("unshare", &[&surroundings as &[&str], &command].concat());
        let (told, stderr) = std::io::pipe().expect("a pipe");
        run.stderr(stderr);
        let mut run = Process::of(run);
        let [before, orphan, other, secret, own] = std::array::from_fn(|_| run.line());
        until("it is an orphan", || child(&run.pid()).split(' ').any(|pid| pid == orphan));
        // What a command leaves running is ended in the same way as what loses its lock.
        if is_lost {
            revoke(&place)
        } else {
            run.say("\n")
        }
        assert_eq!(run.end(), Some(code));
        for pid in [own, secret] {
            assert!(!lives(&pid), "{pid} lives on");
        }
        for pid in [before, orphan, other] {
            assert!(lives(&pid), "{pid} does not live on");
            let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process");
            kill_process(pid, Signal::KILL).expect("it lives");
        }
        // They had the pipe as well.
        let told: Vec<_> = BufReader::new(told).lines().map(|line| line.expect("text")).collect();
        let left = "distlock: 1 processes of the command may not be killed, and live on";
        assert!(told.iter().any(|line| line == left), "{told:?}");
    }
}
