//! One line per file, in which all clients of this process take turns.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, Weak},
};

use lock_core::keep::poison::lock;

use crate::wire::turns::Turns;

/// SQLite lets one write at a time. Within a process writes go in order, which is quicker than
/// SQLite's retries.
pub(super) const SEATS: [usize; 3] = [1, 1, 1];

/// The turns of all clients of this file.
pub(super) fn turns(file: &str) -> Arc<Turns> {
    static LINES: LazyLock<Mutex<HashMap<String, Weak<Turns>>>> = LazyLock::new(Mutex::default);
    let mut lines = lock(&LINES);
    lines.retain(|_, line| line.strong_count() > 0);
    let known = lines.entry(file.to_owned()).or_default();
    known.upgrade().unwrap_or_else(|| {
        let turns = Arc::new(Turns::new(SEATS));
        *known = Arc::downgrade(&turns);
        turns
    })
}
