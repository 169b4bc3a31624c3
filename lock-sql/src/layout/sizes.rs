//! The longest texts that are kept in the store.

use lock_core::{Error, Request, Result};

/// The most bytes of a leader's value. A statement has two characters for each, and servers refuse
/// statements that are too long: MySQL from 4 MB on (`max_allowed_packet`).
const LONGEST_VALUE: usize = 1024 * 1024;
/// The most bytes of a holder's description. A set of a hundred locks has as many in one statement.
const LONGEST_HOLDER: usize = 64 * 1024;

/// Checks what an attempt says about itself.
///
/// # Errors
///
/// [`Error::InvalidOption`].
pub(crate) fn check(request: &Request) -> Result<()> {
    check_value(request.value.as_deref().unwrap_or_default())?;
    check_size("holder", request.holder.len(), LONGEST_HOLDER)
}

/// Checks a leader's value.
///
/// # Errors
///
/// [`Error::InvalidOption`].
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check_size("value", value.len(), LONGEST_VALUE)
}

fn check_size(option: &str, length: usize, most: usize) -> Result<()> {
    if length <= most {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: option.to_owned(),
        value: format!("{length} bytes"),
        allowed: format!("at most {most} bytes with SQL"),
    })
}
