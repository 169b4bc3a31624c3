//! Plays the properties of lock-core with every kind of lock that acts like an exclusive one.

#[path = "../../../tests/shared/remote.rs"]
mod remote;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use lock_core::{
    Clock,
    properties::{self, AS_MUTEX, AsMutex, Check, Failure, Guise, Harness, Outcome},
};
use lock_zk::client::{Client as Raw, Error as ZkError};

pub use self::remote::Remote;

/// The checks that restart servers: they have some for themselves.
const RESTARTING: [&str; 3] =
    ["fencing::across_restart", "reconnect::while_holding", "reconnect::while_waiting"];
/// The checks that cannot be made: a lock lives by the session that took it.
const SKIPPED: [&str; 6] = [
    "lock::detach::a_lost_answer_costs_nothing",
    "lock::detach::free_if_nobody_takes_it_up",
    "lock::detach::handed_on_and_revoked",
    "lock::detach::outlives_who_left_it",
    "lock::detach::taken_up_by_another",
    "lock::detach::taken_up_once",
];

/// Everything below a directory, the lowest first.
async fn nodes(raw: &Raw, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for child in raw.list_children(path).await.unwrap_or_default() {
        let child = format!("{path}/{child}");
        found.extend(Box::pin(nodes(raw, &child)).await);
        found.push(child);
    }
    found
}

/// Everything in the directories of the locks below a prefix: the servers remove the directories.
pub async fn leftovers(raw: &Raw, prefix: &str) -> Vec<String> {
    let mut nodes = nodes(raw, prefix).await;
    nodes.retain(|node| node.matches('/').count() > 2);
    nodes
}

/// Removes a directory with all that is in it.
pub async fn remove(raw: &Raw, path: &str) -> Result<(), Failure> {
    let mut nodes = nodes(raw, path).await;
    nodes.push(path.to_owned());
    for node in nodes {
        match raw.delete(&node, None).await {
            // The server removes empty containers, too.
            Ok(()) | Err(ZkError::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A check, as one kind of lock.
struct Case {
    name: String,
    check: Check,
    guise: Option<Guise>,
}

/// Checks to be played, and what came of them.
#[derive(Clone, Default)]
pub struct Checks {
    open: Arc<Mutex<VecDeque<Case>>>,
    results: Arc<Mutex<Results>>,
}

#[derive(Default)]
struct Results {
    kept: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
}

impl Checks {
    /// The checks that restart servers, or the others; `as_others` also with each guise that they
    /// can have.
    pub fn new(may_restart: bool, as_others: bool) -> Self {
        let checks = Self::default();
        for property in properties::all() {
            let guises = AS_MUTEX.iter().filter(|_| property.of_exclusive && as_others);
            let guises = guises.map(|(kind, guise)| (*kind, Some(*guise)));
            for (kind, guise) in [("lock", None)].into_iter().chain(guises) {
                for check in property.checks {
                    let name = format!("{}::{}", property.name, check.name);
                    if RESTARTING.contains(&name.as_str()) == may_restart {
                        let name = format!("{kind}::{name}");
                        let case = Case { name, check: *check, guise };
                        checks.open.lock().unwrap().push_back(case);
                    }
                }
            }
        }
        checks
    }

    /// Plays checks until there are no more, each in a room with a prefix of its own.
    pub async fn play<H: Harness + 'static>(self, room: impl Fn(String) -> H) {
        loop {
            let next = self.open.lock().unwrap().pop_front();
            let Some(Case { name, check, guise }) = next else { return };
            let room = Box::new(room(format!("/{}", name.replace("::", "-"))));
            let harness: Box<dyn Harness> = match guise {
                Some(guise) => Box::new(AsMutex { harness: room, guise }),
                None => room,
            };
            let began = Clock::Boot.now();
            let outcome = check.run(&*harness).await;
            let took = Clock::Boot.now().since(began);
            let mut results = self.results.lock().unwrap();
            match outcome {
                Ok(Outcome::Skipped(why)) => {
                    println!("skipped {name}: {why}");
                    results.skipped.push(name);
                }
                Ok(_) => results.kept += 1,
                Err(why) => results.failed.push(format!("{name} after {took:?}: {why}")),
            }
        }
    }

    /// Fails unless all of these were kept, except those that cannot be made.
    pub fn all_kept(each: [Self; 2]) {
        let (mut kept, mut skipped, mut failed) = (0, Vec::new(), Vec::new());
        for checks in each {
            assert!(checks.open.lock().unwrap().is_empty(), "not all were played");
            let mut results = checks.results.lock().unwrap();
            kept += results.kept;
            skipped.append(&mut results.skipped);
            failed.append(&mut results.failed);
        }
        println!("{kept} kept");
        assert!(failed.is_empty(), "{failed:#?}");
        skipped.sort();
        assert_eq!(skipped, SKIPPED);
    }
}
