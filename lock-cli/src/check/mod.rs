//! `distlock check`: what a store keeps of what it promises, tried out beside those who use it.
//!
//! `site` is the store and the names that are the check's own, `namespace` what keeps to them, `room` one
//! check's harness, `proxy` a client's network; `trial` plays the checks, `report` tells.

mod namespace;
mod proxy;
mod report;
mod room;
mod site;
mod trial;

use std::{io, process::ExitCode, sync::Arc};

use rustix::process::Signal;

use crate::{
    check::{report::Report, site::Site, trial::Played},
    choice::Choice,
    exit::{Code, Failure, say},
    held::by_signal,
    opt::Check,
    signals::Signals,
};

/// Checks one store after the other. A signal ends it, and nothing is left behind.
///
/// # Errors
///
/// What the only store answers, and a wrong URL; else the table tells.
pub(crate) async fn check(opt: &Check, stores: &[Choice]) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(Failure::system("listening for signals"))?;
    let sites = tokio::select! {
        sites = connect(stores) => sites?,
        signal = signals.end() => return Ok(by_signal(signal)),
    };
    let mut reports = Vec::new();
    for (number, (store, site)) in (1..).zip(sites) {
        let shown = match stores.len() {
            1 => store.clone(),
            all => format!("store {number} of {all}: {store}"),
        };
        let played = match site {
            Ok(site) => examine(site, &shown, &opt.property, &mut signals).await,
            Err(failure) => Ok(Err(failure)),
        };
        reports.push(match played {
            Ok(Ok(played)) => Report::new(store, played),
            Ok(Err(failure)) if stores.len() == 1 => return Err(failure),
            Ok(Err(failure)) => Report::failed(store, failure),
            Err(signal) => {
                if !reports.is_empty() {
                    tell(opt.json, &reports)?;
                }
                return Ok(by_signal(signal));
            }
        });
    }
    tell(opt.json, &reports)?;
    Ok(report::code(&reports))
}

/// Every store with its name for people.
async fn connect(stores: &[Choice]) -> Result<Vec<(String, Result<Site, Failure>)>, Failure> {
    let mut sites = Vec::new();
    for store in stores {
        sites.push(match Site::connect(store).await {
            Err(failure) if failure.code() == Code::Usage => return Err(failure),
            site => (store.public(), site),
        });
    }
    Ok(sites)
}

/// Plays the checks and cleans up, also after a signal, which ends it. `shown` is what the progress says.
async fn examine(
    mut site: Site,
    shown: &str,
    wanted: &[String],
    signals: &mut Signals,
) -> Result<Result<Played, Failure>, Signal> {
    let ready = tokio::select! {
        ready = site.prepare() => Ok(ready),
        signal = signals.end() => Err(signal),
    };
    let site = Arc::new(site);
    let played = match ready {
        Ok(Ok(())) => tokio::select! {
            played = trial::play(&site, shown, wanted) => Ok(Ok(played)),
            signal = signals.end() => Err(signal),
        },
        Ok(Err(failure)) => Ok(Err(failure)),
        Err(signal) => Err(signal),
    };
    if let (Err(left), false) = (site.clean().await, matches!(played, Ok(Err(_)))) {
        say(left);
    }
    played
}

/// Whether somebody reads it or not, the exit code tells.
fn tell(json: bool, reports: &[Report]) -> Result<(), Failure> {
    match report::print(json, reports) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        told => Ok(told?),
    }
}
