//! Whose clock the expiries in a file are read on.
//!
//! The machine's boot clock starts anew with each boot, and has another reading in another time
//! namespace. So the file says whose it is.

use std::fs;

use lock_core::{Effect, Error, Result};

/// How far tokens jump at each boot of the machine: a power cut may undo the last transactions, and each
/// of them may have granted one. There are never so many before SQLite writes them to the disk.
const JUMP: u64 = 1 << 32;

/// Which boot of the machine this is.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(|c| c.is_ascii_hexdigit()).collect()
}

/// Which time namespace this process lives in.
fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// Statements that remove what another boot has left, and write down whose clock it is.
pub(super) fn settle() -> String {
    let (boot, namespace) = (boot(), namespace());
    let other = format!("EXISTS (SELECT 1 FROM distlock_v1_meta WHERE boot <> '{boot}')");
    format!(
        "DELETE FROM distlock_v1_entries WHERE {other}; \
         DELETE FROM distlock_v1_values WHERE {other}; \
         UPDATE distlock_v1_slots SET token = token + {JUMP} WHERE {other}; \
         DELETE FROM distlock_v1_meta WHERE boot <> '{boot}'; \
         INSERT INTO distlock_v1_meta SELECT '{boot}', '{namespace}' \
         WHERE NOT EXISTS (SELECT 1 FROM distlock_v1_meta);"
    )
}

/// Checks that the clock is this process's.
///
/// # Errors
///
/// [`Error::Rejected`] if it is another namespace's.
pub(super) fn check(theirs: &str) -> Result<()> {
    let ours = namespace();
    if theirs == ours {
        return Ok(());
    }
    let why = format!(
        "the file is in use in time namespace {theirs:?}, and this process is in {ours:?}: their clocks \
         differ, so neither can tell when the other's locks expire; use a file per namespace"
    );
    Err(Error::Rejected {
        store: "sqlite",
        op: "connect",
        effect: Effect::None,
        source: why.into(),
    })
}
