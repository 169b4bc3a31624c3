//! `distlock compare`: tests the claims of articles. `matrix` shows the results.

mod matrix;

use std::{collections::BTreeMap, fs, process::ExitCode};

use lock_compare::{Options, Pace, Part, Progress as Event, Report, Store, Verdict};
use lock_core::StoreUrl;
use uuid::Uuid;

use crate::{
    exit::{Code, Failure},
    opt::Compare,
    print,
    progress::Progress,
};

/// Plays the experiments and prints the report. Needs several threads: experiments stop some of
/// them.
pub(crate) fn compare(opt: &Compare, stores: &[String]) -> Result<ExitCode, Failure> {
    let options = options(opt, stores)?;
    // Fails before the work if the report cannot be written.
    if let Some(file) = &opt.report {
        fs::write(file, "").map_err(Failure::system(file.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::system("starting a runtime"))?;
    let progress = Progress::new();
    let report = runtime.block_on(lock_compare::run(&options, &|event| show(&progress, event)));
    drop(progress);
    let report = report.map_err(|error| Failure::new(Code::System, error.to_string()))?;
    tell(opt, &report)?;
    Ok(match report.count(Verdict::Failed) {
        0 => ExitCode::SUCCESS,
        _ => Code::No.into(),
    })
}

fn show(progress: &Progress, event: Event<'_>) {
    match event {
        Event::Cells(cells) => progress.all(cells),
        Event::Begins(title, store) => progress.begins(format!("{store}: {title}")),
        Event::Ended(number, cell) => progress.ended(|_| {
            let (store, verdict, took) = (cell.store, cell.outcome.verdict, cell.took);
            format!("C{number} on {store}: {verdict} ({took:.1} s)")
        }),
        _ => {}
    }
}

fn options(opt: &Compare, stores: &[String]) -> Result<Options, Failure> {
    let in_use = stores.iter().map(|url| Ok((scheme(url)?, url.clone())));
    Ok(Options {
        claims: opt.claims.clone(),
        stores: opt.stores.clone(),
        in_use: in_use.collect::<Result<BTreeMap<_, _>, Failure>>()?,
        pace: if opt.quick { Pace::Quick } else { Pace::Full },
        part: if opt.swap { Part::Swapped } else { Part::AsClaimed },
        // 53 bits: any reader of JSON can keep them.
        seed: opt.seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0 >> 11),
        traces: opt.traces.clone(),
    })
}

fn scheme(url: &str) -> Result<Store, Failure> {
    let url = StoreUrl::parse(url)?;
    url.scheme().parse().map_err(|error: String| Failure::new(Code::Usage, error))
}

fn tell(opt: &Compare, report: &Report) -> Result<(), Failure> {
    if let Some(file) = &opt.report {
        let page = lock_compare::html(report);
        fs::write(file, page).map_err(Failure::system(file.display()))?;
    }
    match opt.json {
        true => print::json(report)?,
        false => matrix::print(report)?,
    }
    Ok(())
}
