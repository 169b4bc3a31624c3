//! `distlock bench`: measures locks on stores beside each other.
//!
//! `load` reads what is to be measured. Table, page and comparison are lock-bench's.

mod load;

use std::{ffi::OsString, fs, path::Path, process::ExitCode, time::Duration};

use lock_bench::{Comparison, Options, Progress as Event, Report, Violated, against};
use lock_core::StoreUrl;

use crate::{
    arguments,
    exit::{Code, Failure, say},
    opt::Bench,
    print,
    progress::Progress,
};

/// Length and number of the rounds, and those of a quick run: without a store named, two stores with
/// three loads each take ten seconds.
const ROUNDS: (f64, u32) = (1.0, 5);
const QUICK: (f64, u32) = (0.15, 3);

/// Options that the command of the report leaves out, with their values: URLs may have passwords,
/// and files are the reader's own.
const LEFT_OUT: [&str; 4] = ["--store", "--against", "--report", "--log"];

/// Measures, and prints the report. Needs several threads: the workers of one process run at the
/// same time.
pub(crate) fn bench(opt: &Bench, stores: &[String]) -> Result<ExitCode, Failure> {
    let options = options(opt, stores)?;
    let before = opt.against.as_deref().map(read).transpose()?;
    consent(opt, &options)?;
    // Fails before the work if the report cannot be written.
    if let Some(file) = &opt.report {
        fs::write(file, "").map_err(Failure::system(file.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::system("starting a runtime"))?;
    let progress = Progress::new();
    let report = runtime.block_on(lock_bench::run(&options, &|event| show(&progress, event)));
    drop(progress);
    let report = match report {
        Ok(report) => report,
        Err(failure) => return without_report(failure),
    };
    tell(opt, &report)?;
    match (&opt.against, before) {
        (Some(file), Some(before)) => compare(opt, file, &against(&before, &report)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn show(progress: &Progress, event: Event<'_>) {
    match event {
        Event::Rounds(rounds) => progress.all(rounds),
        Event::Begins(preset, store, contender) => {
            progress.begins(format!("{preset} on {store}: {contender}"));
        }
        Event::Ended(rate) => progress.ended(|round| {
            // After a crash it takes seconds.
            let digits = if rate < 10.0 { 2 } else { 0 };
            format!("{round}: {rate:.digits$} per s")
        }),
        _ => {}
    }
}

fn options(opt: &Bench, stores: &[String]) -> Result<Options, Failure> {
    for store in stores.iter().filter(|_| !opt.lab) {
        StoreUrl::parse(store)?;
    }
    let is_quick = opt.quick || (stores.is_empty() && !opt.lab);
    let (seconds, rounds) = if is_quick { QUICK } else { ROUNDS };
    let seconds = Duration::from_secs_f64(opt.seconds.unwrap_or(seconds));
    let (presets, custom) = load::loads(opt, seconds)?;
    let options = Options {
        stores: stores.to_vec(),
        lab: opt.lab,
        presets,
        custom,
        seconds,
        rounds: opt.rounds.unwrap_or(rounds),
        sweep: opt.sweep.clone(),
        alone: opt.alone,
        command: command(arguments::given()),
    };
    options.check().map_err(load::wrong)?;
    Ok(options)
}

/// Says what a store in use will get, and refuses above the bound without `--yes`.
fn consent(opt: &Bench, options: &Options) -> Result<(), Failure> {
    let impact = lock_bench::impact(options);
    for line in &impact.lines {
        say(line);
    }
    match impact.harmless || opt.yes {
        true => Ok(()),
        false => Err(Failure::new(Code::Usage, "a store in use may feel that: add --yes to begin")),
    }
}

fn read(file: &Path) -> Result<Report, Failure> {
    let text = fs::read_to_string(file).map_err(Failure::system(file.display()))?;
    let wrong = |why: String| Failure::new(Code::Usage, format!("{}: {why}", file.display()));
    let report: Report = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("not a report of `distlock bench --json`: {error}")))?;
    match report.format {
        Report::FORMAT => Ok(report),
        other => {
            Err(wrong(format!("its format is {other}; this program reads {}", Report::FORMAT)))
        }
    }
}

/// A violation is what the run has found, with its timeline. Anything else is an error.
fn without_report(failure: lock_bench::Failure) -> Result<ExitCode, Failure> {
    let failure = match failure.downcast::<Violated>() {
        Ok(violated) => {
            for line in violated.to_string().lines() {
                say(line);
            }
            return Ok(Code::No.into());
        }
        Err(failure) => failure,
    };
    Err(match failure.downcast::<distlock::Error>() {
        Ok(error) => (*error).into(),
        Err(failure) => Failure::new(Code::System, failure.to_string()),
    })
}

fn tell(opt: &Bench, report: &Report) -> Result<(), Failure> {
    if let Some(file) = &opt.report {
        let page = lock_bench::html(report);
        fs::write(file, page).map_err(Failure::system(file.display()))?;
    }
    match opt.json {
        true => print::json(report)?,
        false => print::lines(lock_bench::table(report).lines())?,
    }
    Ok(())
}

/// Says what has changed since an earlier run. Beside `--json`, it goes to stderr.
fn compare(opt: &Bench, file: &Path, found: &Comparison) -> Result<ExitCode, Failure> {
    let (file, Comparison { compared, changes }) = (file.display(), found);
    if *compared == 0 {
        let why = format!("{file}: it has no figure with the load, store and machine of this run");
        return Err(Failure::new(Code::Usage, why));
    }
    let end = format!("{} of {compared} figures changed beyond noise since {file}", changes.len());
    let lines = changes.iter().map(ToString::to_string).chain([end]);
    match opt.json {
        true => lines.for_each(say),
        false => print::lines(["".to_owned()].into_iter().chain(lines))?,
    }
    Ok(match changes.iter().any(|change| change.regression) {
        true => Code::No.into(),
        false => ExitCode::SUCCESS,
    })
}

/// The command that repeats a run.
fn command(arguments: Vec<OsString>) -> String {
    let mut words = arguments.into_iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut kept = vec!["distlock".to_owned()];
    while let Some(word) = words.next() {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        if !LEFT_OUT.contains(&option) {
            kept.push(word);
            continue;
        }
        if option == "--store" {
            kept.push("--store URL".to_owned());
        }
        if option == word {
            words.next();
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use lock_memory::{Defect, MemoryStore};

    use super::*;
    use crate::opt::{Command, Opt};

    /// As typed, but for the store, which is broken on purpose: two of a crowd get a lock at once.
    #[test]
    fn a_lock_that_does_not_exclude_has_an_exit_code() {
        MemoryStore::broken(Defect::GrantsTwoOfACrowd).put("broken");
        let line = "distlock bench --alone --yes --hold 2ms --seconds 0.1 --sweep workers=8,16";
        let parsed = Opt::try_parse_from(line.split(' ')).unwrap();
        let Command::Bench(opt) = parsed.command else { panic!("another command") };
        let ended = |store: &str| bench(&opt, &[store.to_owned()]).unwrap();
        let [broken, whole] = ["memory:broken", "memory:whole"].map(ended);
        // As text: an `ExitCode` is opaque.
        assert_eq!(format!("{broken:?}"), format!("{:?}", ExitCode::from(1)));
        assert_eq!(format!("{whole:?}"), format!("{:?}", ExitCode::SUCCESS));
    }

    #[test]
    fn the_command_of_a_report_has_no_url() {
        for (given, kept) in [
            ("bench --lab --quick", "distlock bench --lab --quick"),
            ("--store redis://:p@h bench --alone", "distlock --store URL bench --alone"),
            (
                "bench --store=redis://:p@h --report r.html --sweep names=1,2 --against=a.json",
                "distlock bench --store URL --sweep names=1,2",
            ),
        ] {
            let given = ["distlock"].into_iter().chain(given.split(' ')).map(OsString::from);
            assert_eq!(command(given.collect()), kept);
        }
    }
}
