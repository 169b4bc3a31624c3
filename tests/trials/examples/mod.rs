//! The examples `service`, `worker` and `tool` as users run them: several processes side by side on
//! SQLite, Redis and etcd. The tests check the shared state of the processes. They end some
//! processes by a signal, by force, and while they wait.

mod program;
mod replicas;
#[path = "../../../examples/service/src/main.rs"]
mod service;
#[path = "../../../examples/tool/src/main.rs"]
#[allow(unused_imports, dead_code, reason = "its unit tests run with the example")]
mod tool;
mod tools;
#[path = "../../../examples/worker/src/main.rs"]
mod worker;
mod workers;

use std::{pin::Pin, process::ExitCode};

use libtest_mimic::Trial;

use crate::support;

/// A test on a store, by name.
type Try = (&'static str, fn(&'static str) -> Pin<Box<dyn Future<Output = ()>>>);

/// Runs as an example if the environment says so.
pub fn example() -> Option<ExitCode> {
    match std::env::var(program::EXAMPLE).ok()?.as_str() {
        "service" => Some(service::main()),
        "worker" => Some(worker::main()),
        "tool" => Some(tool::main()),
        _ => None,
    }
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for store in support::stores().filter(|store| ["sqlite", "redis", "etcd"].contains(store)) {
        for (name, attempt) in [replicas::TRIES, workers::TRIES, tools::TRIES].concat() {
            if store == "sqlite" && replicas::SERVERS_ONLY.contains(&name) {
                continue;
            }
            trials.push(Trial::test(format!("examples::{store}::{name}"), move || {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()?;
                runtime.block_on(attempt(store));
                Ok(())
            }));
        }
    }
    trials
}
