//! The longest texts that are kept in the store.

use lock_core::{Error, Result};

/// The most bytes of a leader's value. Each change is pushed to all observers, and a server ends the
/// connection of one whose pushes fill 8 MB for a minute, or 32 MB.
const LONGEST_VALUE: usize = 1024 * 1024;
/// The most bytes of a holder's description.
const LONGEST_HOLDER: usize = 64 * 1024;

/// Checks a leader's value.
///
/// # Errors
///
/// [`Error::InvalidOption`].
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check("value", value.len(), LONGEST_VALUE)
}

/// Checks a holder's description.
///
/// # Errors
///
/// [`Error::InvalidOption`].
pub(crate) fn check_holder(holder: &str) -> Result<()> {
    check("holder", holder.len(), LONGEST_HOLDER)
}

fn check(option: &str, length: usize, most: usize) -> Result<()> {
    if length <= most {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: option.to_owned(),
        value: format!("{length} bytes"),
        allowed: format!("at most {most} bytes with Redis"),
    })
}
