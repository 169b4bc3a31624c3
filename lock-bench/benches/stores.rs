//! All stores that are compiled in and installed, on private servers: what a lock costs without
//! contention, on many names, and on one. distlock beside the bare client and the usual way.
//!
//! `cargo bench -p distlock-bench --features all [-- STORE..]`; `distlock bench` has more to choose.

use std::{process::ExitCode, time::Duration};

use lock_bench::{Options, Preset, Progress, child, run, table};

fn main() -> ExitCode {
    // Fleets are made of processes of this program.
    if let Some(ended) = child() {
        return ended;
    }
    // Cargo adds `--bench`.
    let stores: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let command = format!("cargo bench -p distlock-bench --features all -- {}", stores.join(" "));
    let options = Options {
        stores,
        lab: true,
        presets: vec![Preset::Uncontended, Preset::ManyNames, Preset::HotName],
        seconds: Duration::from_secs(2),
        rounds: 5,
        command: command.trim_end().trim_end_matches(" --").to_owned(),
        ..Options::default()
    };
    let report = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(run(&options, &show)),
        Err(error) => Err(error.into()),
    };
    match report {
        Ok(report) => {
            println!("{}", table(&report));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn show(progress: Progress<'_>) {
    match progress {
        Progress::Rounds(count) => eprintln!("{count} rounds"),
        Progress::Begins(preset, store, contender) => eprint!("{preset}, {store}, {contender}: "),
        Progress::Ended(rate) => eprintln!("{rate:.0}/s"),
        _ => {}
    }
}
