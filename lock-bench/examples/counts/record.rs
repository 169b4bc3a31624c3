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
    pub reason: String,
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
    /// Costs that were counted here and now.
    pub fn of(reason: &str, counts: BTreeMap<String, Figures>) -> Result<Self, Failure> {
        let version = Command::new("rustc").arg("--version").output();
        let version = version.map_err(|error| format!("rustc: {error}"))?.stdout;
        Ok(Self {
            reason: reason.trim().to_owned(),
            toolchain: String::from_utf8_lossy(&version).trim().to_owned(),
            dependencies: format!("{:016x}", hash(&fs::read(LOCK)?)),
            processor: Machine::this().processor,
            counts,
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

    /// What it was written with, if other costs may come of that.
    pub fn other_than(&self, now: &Self) -> Option<&str> {
        if self.toolchain != now.toolchain {
            Some(&self.toolchain)
        } else if self.dependencies != now.dependencies {
            Some("another Cargo.lock")
        } else {
            (self.processor != now.processor).then_some(&*self.processor)
        }
    }
}

/// FNV-1a: it must be the same with the next toolchain.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
