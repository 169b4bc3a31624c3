//! `distlock run x -- true` from start to end on warm stores, beside `etcdctl lock x true`. `true`
//! alone shows the cost of any process.
//!
//! `cargo bench -p distlock-cli --features etcd --bench run [-- ROUNDS]`

#![cfg(target_os = "linux")]

use std::{
    fmt,
    process::{Command, Stdio},
    time::Duration,
};

use comfy_table::{Table, presets};
use lock_core::Clock;

const ROUNDS: usize = 200;

/// A command, and the durations of its turns.
struct Side {
    what: &'static str,
    command: Command,
    took: Vec<Duration>,
}

impl Side {
    fn new(what: &'static str, words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        // Cargo sets it. Each dynamically linked program would search it for libraries first.
        command.env_remove("LD_LIBRARY_PATH");
        Self { what, command, took: Vec::new() }
    }

    #[cfg(any(feature = "etcd", feature = "sqlite"))]
    fn distlock(what: &'static str, store: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_distlock");
        Self::new(what, &[program, "run", "--store", store, "x", "--", "true"])
    }

    fn turn(&mut self) -> Duration {
        let start = Clock::Boot.now();
        let status = self.command.status().unwrap_or_else(|error| panic!("{}: {error}", self.what));
        assert!(status.success(), "{}: {status}", self.what);
        Clock::Boot.now().since(start)
    }

    /// The duration that this percentage of the turns did not exceed.
    fn quantile(&self, hundredths: usize) -> Duration {
        let mut took = self.took.clone();
        took.sort_unstable();
        took[(took.len() - 1) * hundredths / 100]
    }
}

fn main() {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(compare(rounds));
}

async fn compare(rounds: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sides = vec![Side::new("true", &["true"])];
    #[cfg(feature = "etcd")]
    let etcd = lock_lab::Etcd::start().await.expect("an etcd");
    #[cfg(feature = "etcd")]
    {
        let endpoint = etcd.addr().to_string();
        let mut etcdctl = Side::new("etcdctl lock", &["etcdctl", "lock", "x", "true"]);
        etcdctl.command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", endpoint);
        sides.extend([etcdctl, Side::distlock("distlock run, etcd", &etcd.url())]);
    }
    #[cfg(feature = "sqlite")]
    {
        let file = format!("sqlite:{}", folder.path().join("db").display());
        sides.push(Side::distlock("distlock run, SQLite", &file));
    }
    // The first round warms everything up. Each round has one turn per side, so noise hits all
    // sides.
    for round in 0..=rounds {
        for side in &mut sides {
            let took = side.turn();
            if round > 0 {
                side.took.push(took);
            }
        }
    }
    // etcdctl leaves a lease behind each time; distlock leaves none.
    #[cfg(feature = "etcd")]
    assert_eq!(etcd.leases().await.expect("an answer").len(), rounds + 1, "leases that are left");
    drop(folder);
    println!("{}", table(&sides));
    println!("milliseconds from start to end; {rounds} rounds, the sides in turns");
}

fn table(sides: &[Side]) -> impl fmt::Display {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["", "median", "fastest", "9 of 10 within"]);
    for side in sides {
        let times = [50, 0, 90].map(|q| format!("{:.1}", side.quantile(q).as_secs_f64() * 1e3));
        table.add_row(std::iter::once(side.what.to_owned()).chain(times));
    }
    table
}
