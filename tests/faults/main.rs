//! Holders that are real processes: killed with SIGKILL, stopped with SIGSTOP for longer than their
//! TTL, and cut off from the network.

mod child;
mod parent;
#[path = "../support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    if let Some(url) = std::env::var_os(child::URL) {
        return child::hold(&url.to_string_lossy());
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(3);
    let mut trials = Vec::new();
    for store in support::stores() {
        for (name, fault) in parent::FAULTS {
            // A file has no network.
            if (store, name) == ("sqlite", "cut_off") {
                continue;
            }
            trials.push(Trial::test(format!("{store}::{name}"), move || {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()?;
                Ok(runtime.block_on(fault(store))?)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
