//! The costs that are committed.

use std::{collections::BTreeMap, fs, process::Command};

use lock_report::Machine;
use serde::{Deserialize, Serialize};

use crate::{Failure, figures::Figures};

pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.json");
pub const COMMAND: &str = ".ci/counts";
const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");

#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    /// Why it was written.
    reason: String,
    /// What `rustc --version` says.
    toolchain: String,
    /// A hash of `Cargo.lock`.
    dependencies: String,
    /// The kind of processor: some functions are chosen by it.
    processor: String,
    /// By store and number of tasks.
    pub counts: BTreeMap<String, Figures>,
}

impl Record {
    /// A record of here and now, to which the costs are still to come.
    pub fn here(reason: &str) -> Result<Self, Failure> {
        let version = Command::new("rustc").arg("--version").output();
        let version = version.map_err(|error| format!("rustc: {error}"))?.stdout;
        Ok(Self {
            reason: reason.trim().to_owned(),
            toolchain: String::from_utf8_lossy(&version).trim().to_owned(),
            dependencies: format!("{:016x}", hash(&fs::read(LOCK)?)),
            processor: Machine::this().processor,
            counts: BTreeMap::new(),
        })
    }

    pub fn read() -> Result<Self, Failure> {
        let text = fs::read(FILE)
            .map_err(|error| format!("{FILE}: {error}; `{COMMAND} --write REASON` writes it"))?;
        Ok(serde_json::from_slice(&text).map_err(|error| format!("{FILE}: {error}"))?)
    }

    pub fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(fs::write(FILE, text).map_err(|error| format!("{FILE}: {error}"))?)
    }

    /// With what it was written, if other costs come of that alone.
    pub fn other_than(&self, now: &Self) -> Option<&str> {
        if self.toolchain != now.toolchain {
            return Some(&self.toolchain);
        }
        (self.processor != now.processor).then_some(&*self.processor)
    }

    /// Whether it was written with the same `Cargo.lock`.
    pub fn has_dependencies_of(&self, now: &Self) -> bool {
        self.dependencies == now.dependencies
    }

    /// Whether these costs are within the bound.
    pub fn admits(&self, what: &str, now: &Figures) -> bool {
        self.counts.get(what).is_some_and(|before| now.risen(before).is_empty())
    }

    /// A sentence for each cost that has risen or come since. The file may have more stores.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (what, figures) in &now.counts {
            match self.counts.get(what) {
                Some(before) => {
                    found
                        .extend(figures.risen(before).iter().map(|rise| format!("{what}: {rise}")));
                }
                None => found.push(format!("{what}: not in the file")),
            }
        }
        found
    }
}

/// FNV-1a: it must be the same with the next toolchain.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use lock_lab::Counters;

    use super::*;
    use crate::figures::INSTRUCTIONS;

    fn record(processor: &str, dependencies: &str, counts: &[(&str, u64)]) -> Record {
        let figures = |count: u64| Figures::of(&Counters::from_iter([(INSTRUCTIONS, count)]), 1);
        let counts = counts.iter().map(|(what, count)| ((*what).to_owned(), figures(*count)));
        let [reason, toolchain] = ["a test", "rustc 1"].map(str::to_owned);
        let [processor, dependencies] = [processor, dependencies].map(str::to_owned);
        Record { reason, toolchain, dependencies, processor, counts: counts.collect() }
    }

    #[test]
    fn what_rises_or_comes_is_told() {
        let before = record("A", "1", &[("memory", 100), ("redis", 100), ("etcd", 100)]);
        let now = record("A", "2", &[("memory", 102), ("redis", 104), ("sqlite", 100)]);
        let found = before.differences(&now).join("\n");
        let expected = "redis: 104.00 instructions, and 100.00 before\nsqlite: not in the file";
        assert_eq!(found, expected);
        assert!(before.admits("memory", &now.counts["memory"]));
        assert!(!before.admits("sqlite", &now.counts["sqlite"]));
    }

    #[test]
    fn another_processor_counts_differently_and_another_lock_file_does_not() {
        let before = record("A", "1", &[]);
        assert_eq!(before.other_than(&record("B", "1", &[])), Some("A"));
        let updated = record("A", "2", &[]);
        assert_eq!(before.other_than(&updated), None);
        assert!(!before.has_dependencies_of(&updated));
    }
}
