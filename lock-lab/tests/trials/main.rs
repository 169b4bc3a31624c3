//! Servers in networks of namespaces. A machine that permits none ignores these tests.

mod cluster;
mod network;
mod network_cleanup;
mod network_missing;
mod redis_split;
#[path = "../support/mod.rs"]
mod support;

use std::{env, process::ExitCode};

/// Makes the list of a file's tests, which are named after the file.
macro_rules! trials {
    ($($test:ident),+ $(,)?) => {
        pub fn trials() -> Vec<libtest_mimic::Trial> {
            let (_, file) = module_path!().split_once("::").expect("a module of this program");
            let name = |test| format!("{file}::{test}");
            vec![$(lock_lab::network_trial(&name(stringify!($test)), $test)),+]
        }
    };
}
use trials;

fn main() -> ExitCode {
    if env::var_os(network_cleanup::MARK).is_some() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(network_cleanup::hold()).expect("it holds a network");
    }
    let files = [
        cluster::trials(),
        network::trials(),
        network_cleanup::trials(),
        network_missing::trials(),
        redis_split::trials(),
    ];
    lock_lab::run_network_tests(files.into_iter().flatten().collect())
}
