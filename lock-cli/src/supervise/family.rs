//! The descendants of a process, as `/proc` shows them.

use std::{
    collections::{HashMap, HashSet},
    fs, io, thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
        pidfd_open, pidfd_send_signal, wait, waitpid,
    },
};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::say;

/// A process. A reused process number is not mistaken for it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// When it started, in ticks since boot.
    start: u64,
}

/// The part of `/proc/PID/stat` that matters.
#[derive(Debug, Eq, PartialEq)]
struct Stat {
    /// `None` outside of our namespace, and once the process has ended.
    parent: Option<Pid>,
    /// A process of the kernel has none, nor has a process of a group from outside our namespace.
    group: Option<Pid>,
    session: i32,
    start: u64,
    lives: bool,
}

impl Process {
    /// Sends a signal. Returns whether that is allowed; `true` if the process is gone.
    fn signal(self, signal: Signal) -> bool {
        // The descriptor stays bound to one process, so the check after opening it is valid.
        let process = pidfd_open(self.pid, PidfdFlags::empty());
        if stat(self.pid).is_none_or(|stat| stat.start != self.start) {
            return true;
        }
        let sent = process.and_then(|process| pidfd_send_signal(process, signal));
        let sent = sent.or_else(|error| match error {
            Errno::SRCH => Err(error),
            // An old kernel, or a container's filter: only the number is left.
            _ => kill_process(self.pid, signal),
        });
        sent != Err(Errno::PERM)
    }
}

/// All living descendants, and the groups without other members. Leaves out the groups in `spared`,
/// and what they have started.
fn below(root: Pid, spared: &HashSet<Pid>) -> (Vec<Process>, HashSet<Pid>) {
    let mut children: HashMap<Option<Pid>, Vec<(Pid, Stat)>> = HashMap::new();
    for pid in pids() {
        if let Some(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push((pid, stat));
        }
    }
    let (mut found, mut groups, mut parents) = (Vec::new(), HashSet::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        for (pid, stat) in children.remove(&Some(parent)).unwrap_or_default() {
            if stat.group.is_some_and(|group| spared.contains(&group)) {
                continue;
            }
            parents.push(pid);
            groups.extend(stat.group);
            if stat.lives {
                found.push(Process { pid, start: stat.start });
            }
        }
    }
    for (_, other) in children.values().flatten() {
        if let Some(group) = other.group {
            groups.remove(&group);
        }
    }
    (found, groups)
}

/// The living descendants that the kernel lists below each process. This is quick, but it may leave
/// some out while others end, or list none at all.
fn named(root: Pid) -> Vec<Process> {
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        for pid in children(parent) {
            // The number may belong to another process by now.
            let Some(stat) = stat(pid).filter(|stat| stat.parent == Some(parent)) else {
                continue;
            };
            parents.push(pid);
            if stat.lives {
                found.push(Process { pid, start: stat.start });
            }
        }
    }
    found
}

/// The children of all threads of a process.
fn children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid()));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| {
        let pids = list.split_ascii_whitespace().filter_map(pid);
        pids.collect::<Vec<_>>()
    };
    lists.flat_map(pids).collect()
}

/// Asks all descendants to end. Continues stopped ones, so that they receive the signal.
pub(crate) fn ask(root: Pid) {
    // Children started while handling the signal are not signalled: the list was taken before.
    let ask = move || {
        for process in below(root, &HashSet::new()).0 {
            process.signal(Signal::TERM);
            process.signal(Signal::CONT);
        }
    };
    // The deadline must not wait for the list: on a busy machine it may take longer than the grace.
    if thread::Builder::new().spawn(ask).is_err() {
        ask();
    }
}

/// Kills the descendants that the kernel lists, at the deadline. Returns whether there were any. A
/// look at all processes would come too late, as it may take longer than the margin: 157 ms were
/// measured among 170 processes at a load of 16, and 2 ms for this.
///
/// The command's group goes first, all at once: a process that starts another and ends, again and
/// again, is quicker than every look.
pub(crate) fn strike(root: Pid, group: Option<Pid>) -> bool {
    let group = group.filter(|group| is_below(root, *group));
    let mut anybody = group.is_some_and(|group| kill_process_group(group, Signal::KILL).is_ok());
    // The first look misses a process that loses its parent meanwhile. The second finds it.
    for _ in 0..2 {
        for process in named(root) {
            anybody = true;
            process.signal(Signal::KILL);
        }
    }
    anybody
}

/// Whether a group is still the one that a child of this process has begun. While the group has a
/// member, the number of a leader that is gone is not reused.
fn is_below(root: Pid, group: Pid) -> bool {
    stat(group).is_none_or(|leader| leader.parent == Some(root))
}

/// Number of looks without a living process after which `kill` gives up: some 2 s. A process that
/// is not reaped by then is traced, and its tracer has to reap it.
const LOOKS: u32 = 50;

/// Kills all descendants until none is left, but none of the groups in `spared`. Returns how many may
/// not be killed; of those that `/proc` hides it knows the children alone.
pub(crate) async fn kill(
    root: Pid,
    spared: &HashSet<Pid>,
    mut reaped: impl FnMut(Pid, WaitStatus),
) -> usize {
    let (mut denied, mut empty, mut looks) = (Vec::new(), 0, 0);
    let mut pause = Duration::from_millis(1);
    loop {
        // A process that starts another before it dies leaves that one to the next round.
        let (living, groups) = below(root, spared);
        // All at once: a process that starts another and ends, again and again, outruns any look.
        for group in groups {
            let _ = kill_process_group(group, Signal::KILL);
        }
        denied.retain(|one| living.contains(one));
        let left: Vec<_> = living.into_iter().filter(|one| !denied.contains(one)).collect();
        denied.extend(left.iter().filter(|process| !process.signal(Signal::KILL)));
        let alone = reap(&mut reaped);
        // Only this process reaps them, so their numbers are theirs. Where some are spared, these may
        // be what ran before.
        let hidden = if spared.is_empty() { hidden(root) } else { Vec::new() };
        let (refused, hit): (Vec<_>, Vec<_>) = hidden
            .into_iter()
            .partition(|child| kill_process(*child, Signal::KILL) == Err(Errno::PERM));
        // A look may miss a process whose parent ends meanwhile; the next look does not.
        empty = if left.is_empty() && hit.is_empty() { empty + 1 } else { 0 };
        // What ran before may run on.
        if alone || empty >= 2 && !spared.is_empty() && are_spared(&children(root), spared) {
            return 0;
        }
        // Processes that may not be killed are no reason to stay. A process that starts another and
        // ends, again and again, is a reason for a while: looks may miss it, yet it has a parent.
        let remain = denied.len() + refused.len();
        if empty >= 2 && remain > 0 || empty >= LOOKS {
            return remain;
        }
        // Once, and not for those that come and go.
        looks += 1;
        // The state of a hidden one is hidden, too.
        let stuck =
            left.iter().filter(|process| waits_in_the_kernel(process.pid)).count() + hit.len();
        if looks == LOOKS && stuck > 0 {
            say(format_args!(
                "{stuck} processes of the command were killed and wait in the kernel, as for a disk or a \
                 network file system: distlock ends after them"
            ));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn are_spared(children: &[Pid], spared: &HashSet<Pid>) -> bool {
    let is_spared = |child: &Pid| stat(*child)?.group.map(|group| spared.contains(&group));
    !children.is_empty() && children.iter().all(|child| is_spared(child).unwrap_or(false))
}

/// Whether a process is in a state in which no signal reaches it.
fn waits_in_the_kernel(process: Pid) -> bool {
    state(process) == Some(b'D')
}

/// Whether a process is neither stopped, traced nor frozen.
pub(crate) fn runs(process: Pid) -> bool {
    matches!(state(process), Some(b'R' | b'S'))
}

/// The state of a process as `/proc` has it; `None` if that does not show it.
fn state(process: Pid) -> Option<u8> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).ok()?;
    stat.rsplit_once(") ")?.1.bytes().next()
}

/// The children that `/proc` does not show (its option `hidepid`): those of other users, and those
/// whose program may not be read.
fn hidden(parent: Pid) -> Vec<Pid> {
    children(parent).into_iter().filter(|child| stat(*child).is_none()).collect()
}

/// The groups of this process and of all below it, as they are now.
pub(crate) fn groups() -> HashSet<Pid> {
    let below = named(getpid()).into_iter().map(|process| process.pid);
    below.chain([getpid()]).filter_map(|pid| stat(pid)?.group).collect()
}

/// As the first process of a container, reaps what others leave to it, for as long as it runs. It
/// waits for the child `own` itself.
pub(crate) fn reap_strays(own: Option<Pid>) -> io::Result<()> {
    if !getpid().is_init() {
        return Ok(());
    }
    let mut ended = signal(SignalKind::child())?;
    tokio::spawn(async move {
        loop {
            for stray in children(getpid()).into_iter().filter(|child| Some(*child) != own) {
                let _ = waitpid(Some(stray), WaitOptions::NOHANG);
            }
            if ended.recv().await.is_none() {
                return;
            }
        }
    });
    Ok(())
}

/// Reports all children that have ended or stopped. Returns whether there are no children any more,
/// and so, for a subreaper, no descendants.
pub(crate) fn reap(mut tell: impl FnMut(Pid, WaitStatus)) -> bool {
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
    loop {
        match wait(options) {
            Ok(Some((pid, status))) => tell(pid, status),
            nothing => return matches!(nothing, Err(Errno::CHILD)),
        }
    }
}

/// The group of this process. `None` if the group is from outside its namespace of processes.
pub(crate) fn our_group() -> Option<Pid> {
    stat(getpid())?.group
}

/// Whether a process has started this one, directly or through others.
pub(crate) fn is_ancestor(process: Pid) -> bool {
    let parent = |pid: &Pid| stat(*pid)?.parent;
    std::iter::successors(parent(&getpid()), parent).any(|ancestor| ancestor == process)
}

/// Whether no shell watches the group of this process: no member has a parent outside of the group
/// and in its session. The kernel does not stop such a group because of the terminal.
pub(crate) fn is_orphaned() -> bool {
    let Some(us) = stat(getpid()) else { return false };
    let members = pids().filter_map(stat);
    let members = members.filter(|member| member.group == us.group && member.lives);
    let mut parents = members.filter_map(|member| stat(member.parent?));
    !parents.any(|parent| parent.group != us.group && parent.session == us.session)
}

fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| pid(entry.file_name().to_str()?))
}

fn stat(pid: Pid) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
}

/// `None` for 0, which is outside of our namespace, and for -1, the group of a process that ends.
fn pid(number: &str) -> Option<Pid> {
    number.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

/// The name in brackets may have spaces and brackets of its own.
fn parse(stat: &str) -> Option<Stat> {
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X");
    // A process whose first thread has ended looks dead, but still works.
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Stat {
        parent: pid(fields.get(1)?),
        group: pid(fields.get(2)?),
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        lives: !dead || threads > 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest() {
        let line = "12 (a) Z 1 (b)) S 7 12 11 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99 1000";
        assert_eq!(
            parse(line),
            Some(Stat {
                parent: Pid::from_raw(7),
                group: Pid::from_raw(12),
                session: 11,
                start: 99,
                lives: true
            })
        );
        let dead = line.replace(") S", ") Z");
        assert!(!parse(&dead).unwrap().lives);
        let first_thread_ended = dead.replace("20 0 1", "20 0 3");
        assert!(parse(&first_thread_ended).unwrap().lives);
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn a_process_that_ends_has_no_group() {
        let line = "12 (a) X 0 -1 -1 0 -1 4 0 0 0 0 0 0 0 0 20 0 0 0 99 1000";
        let ended = Stat { parent: None, group: None, session: -1, start: 99, lives: false };
        assert_eq!(parse(line), Some(ended));
    }
}
