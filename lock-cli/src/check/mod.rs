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

use std::process::ExitCode;

use crate::{
    check::{report::Report, site::Site},
    choice::Choice,
    exit::{Code, Failure, say},
    opt::Check,
    signals::Signals,
};

/// Checks one store after the other. A signal ends it, and nothing is left behind.
///
/// # Errors
///
/// What the only store answers, and a wrong URL; else the table tells.
pub(crate) async fn check(opt: &Check, stores: &[Choice]) -> Result<ExitCode, Failure> {
    let mut sites = Vec::new();
    for store in stores {
        sites.push(match Site::open(store).await {
            Err(failure) if stores.len() == 1 || failure.code() == Code::Usage => {
                return Err(failure);
            }
            site => (store.public(), site),
        });
    }
    let mut signals = Signals::listen().map_err(Failure::system("listening for signals"))?;
    let mut reports = Vec::new();
    for (store, site) in sites {
        reports.push(match site {
            Err(failure) => Report::failed(store, failure),
            Ok(site) => {
                let ended = tokio::select! {
                    ended = trial::play(&site, &store, &opt.property) => Ok(ended),
                    signal = signals.end() => Err(signal),
                };
                if let Err(failure) = site.clean().await {
                    say(failure);
                }
                match ended {
                    Ok(ended) => Report::new(store, ended),
                    Err(signal) => return Ok(signalled(signal)),
                }
            }
        });
    }
    report::print(opt.json, &reports)?;
    Ok(report::code(&reports))
}

fn signalled(signal: rustix::process::Signal) -> ExitCode {
    let code = 128 + signal.as_raw();
    u8::try_from(code).unwrap_or(u8::MAX).into()
}
