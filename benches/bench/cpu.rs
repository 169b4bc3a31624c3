//! Processor time. It says more than the rate when other programs run on the machine.

use std::{fs, time::Duration};

use lock_lab::AnyStore;

/// Unit of `/proc/PID/stat` on Linux.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of the clients, which run in this process, and of the server.
#[derive(Clone, Copy)]
pub struct Cpu {
    /// This process.
    pub clients: Duration,
    /// `None` without a server, and for PostgreSQL, which has a process for each connection.
    pub server: Option<Duration>,
}

impl Cpu {
    /// Processor time used so far.
    pub fn used(store: &AnyStore) -> Self {
        let server = store.server().filter(|server| !server.url().starts_with("postgres"));
        Self {
            clients: of_process(std::process::id()),
            server: server.map(|server| of_process(server.pid())),
        }
    }

    /// What was used since then.
    pub fn since(self, before: Self) -> Self {
        Self {
            clients: self.clients.saturating_sub(before.clients),
            server: self.server.zip(before.server).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

fn of_process(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("Linux");
    // The program's name, in parentheses, may contain spaces.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    TICK * fields.skip(11).take(2).map(|ticks| ticks.parse::<u32>().expect("a number")).sum::<u32>()
}
