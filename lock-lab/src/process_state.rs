//! The kernel's view of a process.

use std::fs;

/// Returns the letter that the kernel shows for a process: `S` sleeping, `T` stopped, `Z` ended and
/// not waited for. `None` if there is no such process.
pub fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

/// Returns whether a process has ended. An orphan stays a zombie if no process reaps orphans. While
/// it is reaped, it is `X`.
pub fn is_gone(pid: u32) -> bool {
    matches!(state_of(pid), None | Some('Z' | 'X'))
}
