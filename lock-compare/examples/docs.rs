//! Writes the documents' view of a report: `report.html`, the pictures, and the generated blocks of
//! both pages, so that no figure in them is written by hand.
//!
//! `cargo run -p distlock-compare --example docs -- docs/comparison/report.json`. With `--check` it
//! writes nothing, and exits with 1 if a file differs from what it would write.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use lock_compare::{Failure, docs::documents};

fn main() -> ExitCode {
    let (options, files): (Vec<_>, Vec<_>) =
        env::args().skip(1).partition(|word| word.starts_with('-'));
    let check = match options.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--check"] => true,
        _ => return usage(),
    };
    let [report] = files.as_slice() else { return usage() };
    match run(&PathBuf::from(report), check) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: docs [--check] docs/comparison/report.json");
    ExitCode::from(2)
}

/// Returns whether all files are up to date.
fn run(report: &Path, check: bool) -> Result<bool, Failure> {
    let mut is_well = true;
    for document in documents(report)? {
        if document.is_current()? {
            continue;
        }
        let path = document.path.display();
        if check {
            eprintln!("{path} is not what the report makes of it; run this without --check");
            is_well = false;
        } else {
            document.write()?;
            println!("{path} written");
        }
    }
    Ok(is_well)
}
