//! The clock of the expiries in a file.
//!
//! The machine's boot clock starts anew with each boot, and has another reading in another time
//! namespace. So the file says which namespace it is from, and which boots have used it.
//!
//! The id of a boot tells no clock: a container may have an id of its own, and a board without a
//! source of randomness may have the same id at each boot. So no entry ends by it.

use std::{fs, io::ErrorKind, path::Path};

use lock_core::{Clock, Effect, Error, Result, keep::errors};

use crate::layout::{
    dialect::{Dialect, stamp},
    schema::FLOOR,
};

/// How far tokens jump at each boot of the machine. A power cut may undo the last transactions, and
/// each of them may have granted a token. There are never so many before SQLite writes them to the
/// disk.
const JUMP: u64 = 1 << 32;
/// How many boots a file remembers. A forgotten one that comes again makes tokens jump once more.
const BOOTS: u32 = 100;
/// The first time namespace of each machine. A kernel that has none has this clock, too.
const FIRST: &str = "4026531834";

/// The boot and the time namespace of this process. Both consist of hexadecimal digits.
pub(super) struct Here {
    boot: String,
    namespace: String,
}

impl Here {
    pub(super) fn now() -> Result<Self> {
        Ok(Self { boot: boot()?, namespace: namespace()? })
    }

    /// The query for the time namespace of a file that is set up, knows this boot, and has no entry
    /// of an earlier one. Otherwise it returns no rows, or fails because a table is missing. An
    /// entry of the last second does not count: it may have been made meanwhile.
    pub(super) fn settled(&self) -> String {
        let query = format!(
            "SELECT clock FROM distlock_v1_meta WHERE boot = '{}' \
             AND EXISTS (SELECT 1 FROM distlock_v1_slots WHERE slot = 0) \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_marks WHERE name IS NULL) \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries \
             WHERE expires > {} + ttl + 1000000)",
            self.boot,
            Dialect::Sqlite.now()
        );
        stamp(&query, Clock::Boot.now())
    }

    /// Statements that remove what an earlier boot has left, and record this one. They must be
    /// written when the file is locked: then no entry that is there can be newer, so one that lives
    /// for longer than its TTL is of an earlier boot.
    pub(super) fn settle(&self) -> String {
        let Self { boot, namespace } = self;
        let now = Dialect::Sqlite.now();
        let statements = format!(
            "DELETE FROM distlock_v1_entries WHERE expires > {now} + ttl; \
             INSERT INTO distlock_v1_meta SELECT '{boot}', '{namespace}' \
             WHERE NOT EXISTS (SELECT 1 FROM distlock_v1_meta WHERE boot = '{boot}'); \
             UPDATE distlock_v1_slots SET token = token + {JUMP} WHERE changes() = 1 \
             AND slot <> {FLOOR} AND (SELECT COUNT(*) FROM distlock_v1_meta) > 1; \
             DELETE FROM distlock_v1_meta \
             WHERE rowid <= (SELECT MAX(rowid) FROM distlock_v1_meta) - {BOOTS};"
        );
        stamp(&statements, Clock::Boot.now())
    }

    /// Whether the clock of a file with this time namespace is this process's.
    pub(super) fn has(&self, theirs: &str) -> bool {
        self.namespace == theirs
    }

    /// The error for a file with another clock.
    pub(super) fn other(&self, theirs: &str) -> Error {
        rejected(format!(
            "the file is of time namespace {theirs:?}, and this process is in {:?}: their clocks \
             differ, so neither can tell when the other's locks expire; use a file per namespace, \
             or remove the file if no process of the other one uses it",
            self.namespace
        ))
    }
}

/// The id of this boot of the machine. Fails if the kernel does not say: tokens would not jump
/// after a power cut.
fn boot() -> Result<String> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let id = fs::read_to_string(FILE).map_err(|error| rejected(format!("{FILE}: {error}")))?;
    let id: String = id.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    match id.len() {
        32 => Ok(id),
        _ => Err(rejected(format!("{FILE} has no boot id"))),
    }
}

/// The time namespace of this process.
fn namespace() -> Result<String> {
    const LINK: &str = "/proc/self/ns/time";
    match fs::read_link(LINK) {
        Ok(link) => Ok(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()),
        Err(error)
            if error.kind() == ErrorKind::NotFound && Path::new("/proc/self/ns").exists() =>
        {
            Ok(FIRST.to_owned())
        }
        Err(error) => Err(rejected(format!("{LINK}: {error}"))),
    }
}

fn rejected(why: String) -> Error {
    errors::rejected("sqlite", "connect", Effect::None, why)
}
