//! Clients and servers on cores of their own. Which of them the system puts on one core changes
//! from run to run, and costs more than what is measured.

use std::io;

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::cpu;

/// Keeps this thread, and those that it starts, on the clients' cores: the first half. Does nothing
/// where there is one core.
pub(crate) fn keep_clients() -> io::Result<()> {
    match halves()? {
        Some((clients, _)) => Ok(sched_setaffinity(None, &clients)?),
        None => Ok(()),
    }
}

/// Keeps a server with all its processes and threads on the other cores. It may start and end some
/// of them meanwhile: those that are gone need no core.
pub(crate) fn keep_server(pid: u32) -> io::Result<()> {
    let Some((_, servers)) = halves()? else { return Ok(()) };
    for process in cpu::tree(pid) {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let number = thread.file_name().to_string_lossy().parse::<i32>().ok();
            if let Some(number) = number.and_then(Pid::from_raw) {
                let _ = sched_setaffinity(Some(number), &servers);
            }
        }
    }
    Ok(())
}

/// Says which cores are whose.
pub(crate) fn told() -> String {
    match halves() {
        Ok(Some((clients, servers))) => {
            let (clients, servers) = (clients.count(), servers.count());
            format!("Clients have {clients} of the cores, and private servers the other {servers}.")
        }
        _ => "Clients and servers share one core.".to_owned(),
    }
}

/// `None` where there is one core.
fn halves() -> io::Result<Option<(CpuSet, CpuSet)>> {
    // The main thread keeps the cores that this program was given.
    let pid = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
    let allowed = sched_getaffinity(pid)?;
    let cores: Vec<_> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let (clients, servers) = cores.split_at(cores.len() / 2);
    Ok((!clients.is_empty()).then(|| (only(clients), only(servers))))
}

fn only(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    set
}
