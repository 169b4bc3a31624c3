//! A tool without async. It draws invoice numbers from a file: no number twice, and none left out,
//! even if many instances run at the same time. Its unit tests run on the store in memory:
//! `cargo test -p tool`.
//!
//! ```text
//! cargo run -p tool -- sqlite:locks.db invoices --count 3
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use distlock::{
    Error,
    blocking::{self, LockGuard, Locks},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Draws invoice numbers.
#[derive(Parser)]
struct Args {
    /// The store of the locks, by URL.
    store: String,
    /// The file with the last number that was drawn.
    file: PathBuf,
    /// How many numbers to draw.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Seconds to wait for others that draw.
    #[arg(long, default_value_t = 30)]
    wait: u64,
}

pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    let drawn = blocking::connect(&args.store).map_err(Failure::from).and_then(|locks| {
        let wait = Duration::from_secs(args.wait);
        draw(&locks, &args.file, args.count, wait, |number, _| println!("{number}"))
    });
    let Err(error) = drawn else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    match error.downcast_ref::<Error>() {
        // To be tried again later (sysexits.h).
        Some(error) if error.is_transient() => ExitCode::from(75),
        _ => ExitCode::FAILURE,
    }
}

/// Draws numbers under the lock. Prints each number after it is written.
fn draw(
    locks: &Locks,
    file: &Path,
    count: u64,
    wait: Duration,
    mut hand_out: impl FnMut(u64, &LockGuard),
) -> Result<(), Failure> {
    let guard = locks.lock("invoices")?.wait(wait).acquire()?;
    for _ in 0..count {
        // A thread cannot be stopped when its lock is lost, so it checks before each write.
        if !guard.is_valid() {
            break;
        }
        let number = last(file)? + 1;
        let new = file.with_extension("new");
        fs::write(&new, number.to_string())?;
        fs::rename(&new, file)?;
        hand_out(number, &guard);
    }
    // An error if the lock was lost.
    Ok(guard.release()?)
}

/// The last drawn number; 0 if there is no file.
fn last(file: &Path) -> Result<u64, Failure> {
    match fs::read_to_string(file) {
        Ok(number) => number
            .trim()
            .parse()
            .map_err(|_| format!("{}: {number:?} is not a number", file.display()).into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(format!("{}: {error}", file.display()).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Mutex, thread};

    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    /// A folder without a drawn number. Dropping it deletes it.
    fn office() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("invoices");
        (folder, file)
    }

    #[test]
    fn no_number_is_drawn_twice_or_left_out() {
        let (_folder, file) = office();
        let drawn = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let locks = blocking::connect("memory:many").unwrap();
                    for _ in 0..10 {
                        let note = |number, _: &_| assert!(drawn.lock().unwrap().insert(number));
                        draw(&locks, &file, 5, WAIT, note).unwrap();
                    }
                });
            }
        });
        assert_eq!(drawn.into_inner().unwrap(), (1..=200).collect());
    }

    #[test]
    fn a_wait_in_vain_draws_nothing_and_names_the_holder() {
        let (_folder, file) = office();
        let (ours, theirs) =
            (blocking::connect("memory:busy").unwrap(), blocking::connect("memory:busy").unwrap());
        let _held = theirs.lock("invoices").unwrap().holder("the auditor").acquire().unwrap();
        let busy = draw(&ours, &file, 1, Duration::from_millis(10), |_, _| panic!("drawn"));
        let busy = busy.unwrap_err().downcast::<Error>().unwrap();
        assert!(busy.is_busy() && busy.to_string().contains("the auditor"), "{busy}");
        assert!(!file.exists());
    }

    #[test]
    fn a_lost_lock_ends_the_drawing() {
        let (_folder, file) = office();
        let (ours, operator) =
            (blocking::connect("memory:lost").unwrap(), blocking::connect("memory:lost").unwrap());
        let mut drawn = Vec::new();
        let lost = draw(&ours, &file, 10, WAIT, |number, guard| {
            drawn.push(number);
            if number == 3 {
                let attempt = operator.inspect("invoices").unwrap()[0].attempt.unwrap();
                assert!(operator.revoke("invoices", attempt).unwrap());
                guard.lost_within(WAIT).unwrap().expect("it is told");
            }
        });
        assert!(lost.unwrap_err().downcast::<Error>().unwrap().is_lost());
        assert_eq!((drawn, last(&file).unwrap()), (vec![1, 2, 3], 3));
    }

    #[test]
    fn a_file_of_another_kind_stays_as_it_is() {
        let (_folder, file) = office();
        fs::write(&file, "a letter").unwrap();
        let locks = blocking::connect("memory:letter").unwrap();
        let refused = draw(&locks, &file, 1, WAIT, |_, _| panic!("drawn")).unwrap_err();
        assert!(
            refused.to_string().ends_with("invoices: \"a letter\" is not a number"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "a letter");
        // The lock was given back with the error.
        assert!(locks.inspect("invoices").unwrap().is_empty());
    }
}
