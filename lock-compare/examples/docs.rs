//! Writes the documents' view of a report: `report.html`, the pictures, and the generated blocks of
//! both pages, so that no figure in them is written by hand.
//!
//! `cargo run -p distlock-compare --example docs -- docs/comparison/report.json`. With `--check` it
//! writes nothing, and exits with 1 if a file differs from what it would write.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    lock_report::refresh(env::args().skip(1), lock_compare::docs::documents)
}
