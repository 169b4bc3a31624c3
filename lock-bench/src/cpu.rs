//! Processor time. It says more than the rate when other programs run on the machine.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// Unit of `/proc/PID/stat` on Linux.
const TICK: Duration = Duration::from_millis(10);

/// What `/proc/PID/stat` says of a process.
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    /// By its threads, also ended ones, in whole units.
    own: Duration,
    /// Used by the children that have ended.
    of_ended: Duration,
}

/// What the clients of this process have used: itself, and the programs that it has started for
/// them. Servers are in process groups of their own.
pub(crate) fn clients() -> Duration {
    let own = std::process::id();
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let this = Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0));
    let all = all();
    let Some((group, of_ended)) =
        all.iter().find(|one| one.pid == own).map(|one| (one.group, one.of_ended))
    else {
        return this;
    };
    let below = below(own, &all);
    let helpers = below.into_iter().filter(|one| one.pid != own && one.group == group);
    this + of_ended + helpers.map(Process::used).sum::<Duration>()
}

/// What a server has used, with the processes that it has started.
pub(crate) fn server(pid: u32) -> Duration {
    below(pid, &all()).into_iter().map(Process::used).sum()
}

/// A process and all below it.
pub(crate) fn tree(pid: u32) -> Vec<u32> {
    below(pid, &all()).iter().map(|one| one.pid).collect()
}

fn below(pid: u32, all: &[Process]) -> Vec<&Process> {
    let mut found: Vec<_> = all.iter().filter(|one| one.pid == pid).collect();
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].pid;
        found.extend(all.iter().filter(|one| one.parent == parent && one.pid != parent));
        next += 1;
    }
    found
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter_map(read).collect()
}

/// `None` for a process that has ended meanwhile.
fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    let number = |field: usize| fields.get(field)?.parse::<u32>().ok();
    let (parent, group) = (number(1)?, number(2)?);
    let ticks = |field: usize| Some(TICK * (number(field)? + number(field + 1)?));
    Some(Process { pid, parent, group, own: ticks(11)?, of_ended: ticks(13)? })
}

impl Process {
    /// In nanoseconds where the kernel tells: a server that works little uses no whole unit in a
    /// short round.
    fn used(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        let used = tasks.flatten().filter_map(|task| {
            let told = fs::read_to_string(task.path().join("schedstat")).ok()?;
            told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        });
        self.of_ended + used.sum::<Duration>().max(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_time_and_is_its_own_tree() {
        let own = std::process::id();
        assert!(clients() > Duration::ZERO);
        assert!(tree(own).contains(&own));
    }

    /// `etcdctl lock` is a program per lock.
    #[test]
    fn a_program_that_has_ended_counts() {
        let before = clients();
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times";
        let times = std::process::Command::new("sh").args(["-c", spin]).output().unwrap();
        let times = String::from_utf8_lossy(&times.stdout).into_owned();
        assert!(clients() - before >= TICK, "{times}");
    }
}
