//! One running server process.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, retry_on_intr},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group,
        pidfd_open, waitid,
    },
};

use crate::{network::Namespace, process_state::state_of, system_user::User};

/// Number of looks whether a server has stopped, for 5 s in all: it may be writing to a slow disk.
const STOP_LOOKS: usize = 25_000;
const STOP_PAUSE: Duration = Duration::from_micros(200);

/// Becomes the server, and leaves a watcher in its process group.
///
/// The watcher reads a pipe whose other end only the lab's process has. It reads end-of-file when
/// that process dies for any reason. (`PR_SET_PDEATHSIG` would fire when the *thread* that started
/// the server ends, which test runners do all the time.) It then kills the server first, since a
/// server that still writes would disturb the deletion. It also kills the processes that the server
/// has started: those of PostgreSQL leave the group. The rest of the group dies last, with the
/// watcher itself.
///
/// When the lab's process dies, the kernel sends SIGHUP to the group if a process in it is stopped.
const SCRIPT: &str = r#"
home=$1; shift
exec 3<&0 </dev/null
{
    trap '' HUP
    read -r _ <&3
    read -r me _ </proc/self/stat
    kill -s STOP $$
    read -r children </proc/$$/task/$$/children
    for child in $children; do [ $child = $me ] || kill -s KILL $child; done
    kill -s KILL $$; rm -rf -- "$home"; kill -s KILL -- -$$
} &
exec 3<&-
exec "$@"
"#;

/// A server process with its watcher. A drop kills both and waits until the server is gone.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Closing it makes the watcher delete the data, so it must outlive the watcher.
    _leash: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` in the folder `home`, with its output in `log`, as `user` and in
    /// `namespace` if there is one.
    pub(crate) fn spawn(
        command: &[OsString],
        home: &Path,
        log: &File,
        user: Option<User>,
        namespace: Option<&Namespace>,
    ) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        if let Some(User { uid, gid }) = user {
            shell.uid(uid).gid(gid);
        }
        shell
            .args(["-c", SCRIPT, "lock-lab"])
            .arg(home)
            .args(command)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0);
        let mut child = match namespace {
            Some(namespace) => namespace.within(|| shell.spawn())?,
            None => shell.spawn()?,
        };
        // Taken out, because `Child::wait` would close it.
        let leash = child.stdin.take();
        Ok(Self { child, _leash: leash })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns how the server ended; `None` if it runs.
    pub(crate) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Stops the server and the processes that it has started.
    pub(crate) fn stop(&self) {
        self.freeze();
    }

    /// Continues them.
    pub(crate) fn resume(&self) {
        for worker in self.workers() {
            send(worker, Signal::CONT);
        }
        send(self.server(), Signal::CONT);
    }

    /// Sends the server the signal on which it reads its configuration.
    pub(crate) fn reload(&self) {
        send(self.server(), Signal::HUP);
    }

    /// Does some work on the processes of the server while they are stopped. Continues them then,
    /// unless the server was stopped before.
    pub(crate) fn while_stopped<T>(&self, work: impl FnOnce(&[u32]) -> T) -> T {
        let ran = state_of(self.pid()) != Some('T');
        let workers = self.freeze();
        let pids = workers.iter().map(|pid| pid.as_raw_pid().cast_unsigned());
        let all: Vec<_> = pids.chain([self.pid()]).collect();
        let is_at_rest = |pid: &u32| matches!(state_of(*pid), None | Some('T' | 'Z' | 'X'));
        for _ in 0..STOP_LOOKS {
            if all.iter().all(is_at_rest) {
                break;
            }
            thread::sleep(STOP_PAUSE);
        }
        let done = work(&all);
        if ran {
            self.resume();
        }
        done
    }

    /// Stops the server, then the processes that it has started, and returns these processes.
    ///
    /// A stopped server starts and reaps no process, so the pids stay valid. The kernel may leave a
    /// process out of the list when another one ends meanwhile: hence the second look.
    fn freeze(&self) -> HashSet<Pid> {
        send(self.server(), Signal::STOP);
        self.until_at_rest();
        let mut stopped = HashSet::new();
        loop {
            let new: Vec<_> = self.workers().filter(|worker| stopped.insert(*worker)).collect();
            if new.is_empty() {
                return stopped;
            }
            new.into_iter().for_each(|worker| send(worker, Signal::STOP));
        }
    }

    /// Waits until the server has stopped, or ended: on another processor it may be in the middle
    /// of starting a process. A process under a debugger does not stop.
    fn until_at_rest(&self) {
        let at_rest = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let look = || waitid(WaitId::Pid(self.server()), at_rest | WaitIdOptions::NOHANG);
        for _ in 0..STOP_LOOKS {
            match look() {
                Ok(None) | Err(Errno::INTR) => thread::sleep(STOP_PAUSE),
                _ => return,
            }
        }
    }

    /// The processes that the server has started, without the watcher, which is the oldest of them.
    fn workers(&self) -> impl Iterator<Item = Pid> {
        let pid = self.pid();
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let pids = list.unwrap_or_default();
        let pids: Vec<_> = pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        pids.into_iter().skip(1).filter_map(Pid::from_raw)
    }

    /// The pid cannot belong to another process by now: the watcher keeps the process group with
    /// that number in use.
    fn server(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let workers = self.freeze();
        // A PostgreSQL does not start again until the last process of its old run is gone.
        let ends: Vec<_> =
            workers.iter().filter_map(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok()).collect();
        // SIGKILL also ends a stopped process.
        workers.into_iter().for_each(|worker| send(worker, Signal::KILL));
        let _ = kill_process_group(self.server(), Signal::KILL);
        let _ = self.child.wait();
        for end in &ends {
            // The death of a child sends a signal, which interrupts a wait here.
            let _ = retry_on_intr(|| poll(&mut [PollFd::new(end, PollFlags::IN)], None));
        }
    }
}

fn send(pid: Pid, signal: Signal) {
    if let Err(error) = kill_process(pid, signal) {
        tracing::debug!(?pid, %error, "signal not delivered");
    }
}
