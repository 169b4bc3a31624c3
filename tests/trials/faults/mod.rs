//! Holders that are real processes: killed with SIGKILL, stopped with SIGSTOP for longer than their
//! TTL, and cut off from the network.

mod child;
mod parent;

use std::process::ExitCode;

use libtest_mimic::Trial;

use crate::support;

/// Runs as a holder if the environment says so.
pub fn hold() -> Option<ExitCode> {
    let url = std::env::var_os(child::URL)?;
    Some(child::hold(&url.to_string_lossy()))
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for store in support::stores() {
        for (name, fault) in parent::FAULTS {
            // A file has no network.
            if (store, name) == ("sqlite", "cut_off") {
                continue;
            }
            trials.push(Trial::test(format!("faults::{store}::{name}"), move || {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()?;
                Ok(runtime.block_on(fault(store))?)
            }));
        }
    }
    trials
}
