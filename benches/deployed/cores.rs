//! Clients and servers on cores of their own. Which of them the system puts on one core changes from
//! run to run, and costs more than what is measured.

use lock_lab::Redis;
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// Keeps this thread, which runs all clients, on one core, and the servers on the others. Does
/// nothing where there is one core.
pub fn separate<'a>(servers: impl Iterator<Item = &'a Redis>) {
    let allowed = sched_getaffinity(None).expect("Linux");
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let (clients, rest) = (only(cores.next().into_iter()), only(cores));
    if rest.count() == 0 {
        return;
    }
    sched_setaffinity(None, &clients).expect("a core for the clients");
    for server in servers {
        let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
        sched_setaffinity(pid, &rest).expect("cores for a server");
    }
}

fn only(cores: impl Iterator<Item = usize>) -> CpuSet {
    let mut set = CpuSet::new();
    cores.for_each(|core| set.set(core));
    set
}
