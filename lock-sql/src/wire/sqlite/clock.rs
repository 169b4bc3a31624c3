//! The clock of the expiries in a file.
//!
//! The machine's boot clock starts anew with each boot, and has another reading in another time
//! namespace. So the file says which boot and namespace it is from.

use std::{fs, io::ErrorKind, path::Path};

use lock_core::{Effect, Error, Result, keep::errors};

use crate::layout::schema::FLOOR;

/// How far tokens jump at each boot of the machine. A power cut may undo the last transactions, and
/// each of them may have granted a token. There are never so many before SQLite writes them to the
/// disk.
const JUMP: u64 = 1 << 32;

/// The id of this boot of the machine.
///
/// # Errors
///
/// [`Error::Rejected`] if the kernel does not say: a wrong id would end all locks in the file.
fn boot() -> Result<String> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let id = fs::read_to_string(FILE).map_err(|error| rejected(format!("{FILE}: {error}")))?;
    let id: String = id.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    match id.len() {
        32 => Ok(id),
        _ => Err(rejected(format!("{FILE} has no boot id"))),
    }
}

/// The time namespace of this process; empty where the kernel has none.
///
/// # Errors
///
/// [`Error::Rejected`] if the kernel does not say.
fn namespace() -> Result<String> {
    const LINK: &str = "/proc/self/ns/time";
    match fs::read_link(LINK) {
        Ok(link) => Ok(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()),
        Err(error)
            if error.kind() == ErrorKind::NotFound && Path::new("/proc/self/ns").exists() =>
        {
            Ok(String::new())
        }
        Err(error) => Err(rejected(format!("{LINK}: {error}"))),
    }
}

fn rejected(why: String) -> Error {
    errors::rejected("sqlite", "connect", Effect::None, why)
}

/// The query for the time namespace in a file that is set up and was settled in this boot.
/// Otherwise it returns no rows, or fails because a table or column is missing.
///
/// # Errors
///
/// [`Error::Rejected`] if the kernel does not say which boot this is.
pub(super) fn settled() -> Result<String> {
    Ok(format!(
        "SELECT clock FROM distlock_v1_meta WHERE boot = '{}' \
         AND NOT EXISTS (SELECT granted FROM distlock_v1_entries WHERE name IS NULL)",
        boot()?
    ))
}

/// Statements that remove what another boot has left, and record this boot and time namespace.
///
/// # Errors
///
/// [`Error::Rejected`] if the kernel does not say which boot or time namespace this is.
pub(super) fn settle() -> Result<String> {
    let (boot, namespace) = (boot()?, namespace()?);
    let other = format!("EXISTS (SELECT 1 FROM distlock_v1_meta WHERE boot <> '{boot}')");
    Ok(format!(
        "DELETE FROM distlock_v1_entries WHERE {other}; \
         DELETE FROM distlock_v1_values WHERE {other}; \
         UPDATE distlock_v1_slots SET token = token + {JUMP} \
         WHERE slot <> {FLOOR} AND {other}; \
         DELETE FROM distlock_v1_meta WHERE boot <> '{boot}'; \
         INSERT INTO distlock_v1_meta SELECT '{boot}', '{namespace}' \
         WHERE NOT EXISTS (SELECT 1 FROM distlock_v1_meta);"
    ))
}

/// Checks that the file's time namespace is this process's.
///
/// # Errors
///
/// [`Error::Rejected`] if it is another one.
pub(super) fn check(theirs: &str) -> Result<()> {
    let ours = namespace()?;
    if theirs == ours {
        return Ok(());
    }
    Err(rejected(format!(
        "the file is in use in time namespace {theirs:?}, and this process is in {ours:?}: their clocks \
         differ, so neither can tell when the other's locks expire; use a file per namespace"
    )))
}
