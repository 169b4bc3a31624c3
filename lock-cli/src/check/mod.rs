//! `distlock check`: tests the promises of a store while other clients use it.
//!
//! `target` is the store and the check's own names, `namespace` limits a driver to them, `harness`
//! is the store for one check, and `proxy` a client's network. `trial` plays the checks, `report`
//! prints the results.

mod harness;
mod namespace;
mod proxy;
mod report;
mod target;
mod trial;

use std::{io, process::ExitCode, sync::Arc};

use rustix::process::Signal;

use crate::{
    check::{report::Report, target::Target, trial::Played},
    choice::Choice,
    exit::{Code, Failure, by_signal, say},
    opt::Check,
    signals::Signals,
};

/// Checks one store after the other. A signal ends this, and nothing is left behind. Fails if the
/// only store fails; the table shows the errors of several.
pub(crate) async fn check(opt: &Check, stores: &[Choice]) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(Failure::system("listening for signals"))?;
    let targets = tokio::select! {
        targets = connect(stores) => targets?,
        signal = signals.end() => return Ok(by_signal(signal)),
    };
    let mut reports = Vec::new();
    for (number, (store, target)) in (1..).zip(targets) {
        let shown = match stores.len() {
            1 => store.clone(),
            all => format!("store {number} of {all}: {store}"),
        };
        let played = match target {
            Ok(target) => examine(target, &shown, &opt.property, &mut signals).await,
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

/// Connects to every store. Returns each with its name for people.
async fn connect(stores: &[Choice]) -> Result<Vec<(String, Result<Target, Failure>)>, Failure> {
    let mut targets = Vec::new();
    for store in stores {
        targets.push(match Target::connect(store).await {
            Err(failure) if failure.code() == Code::Usage => return Err(failure),
            target => (store.public(), target),
        });
    }
    Ok(targets)
}

/// Plays the checks and cleans up, also after a signal, which ends them. `shown` names the store in
/// the progress.
async fn examine(
    mut target: Target,
    shown: &str,
    wanted: &[String],
    signals: &mut Signals,
) -> Result<Result<Played, Failure>, Signal> {
    let ready = tokio::select! {
        ready = target.prepare() => Ok(ready),
        signal = signals.end() => Err(signal),
    };
    let target = Arc::new(target);
    let played = match ready {
        Ok(Ok(())) => tokio::select! {
            played = trial::play(&target, shown, wanted) => Ok(Ok(played)),
            signal = signals.end() => Err(signal),
        },
        Ok(Err(failure)) => Ok(Err(failure)),
        Err(signal) => Err(signal),
    };
    if let (Err(left), false) = (target.clean().await, matches!(played, Ok(Err(_)))) {
        say(left);
    }
    played
}

/// Prints the reports. A reader that has left is no error: the exit code has the result.
fn tell(json: bool, reports: &[Report]) -> Result<(), Failure> {
    match report::print(json, reports) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        told => Ok(told?),
    }
}
