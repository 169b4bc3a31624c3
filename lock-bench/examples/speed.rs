//! Writes the documents' view of a report: `report.html` and the generated blocks of `docs/speed.md`.
//!
//! `cargo run -p distlock-bench --example speed -- docs/speed/report.json`. With `--check` it writes
//! nothing, and exits with 1 if a file differs from what it would write.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    lock_report::refresh(env::args().skip(1), lock_bench::docs::documents)
}
