//! How large the caller's texts may be, checked before they are sent.
//!
//! etcd takes requests of 1.5 MB by default. The largest value, with the largest description in JSON
//! that escapes each of its bytes, fits in.

use lock_core::{Error, Request, Result};

/// Most bytes of a candidate's value.
const VALUE: usize = 1 << 20;

/// Most bytes of a holder's description. Operators' calls read those of a whole queue.
const HOLDER: usize = 64 << 10;

/// Checks the value and the description of a request.
///
/// # Errors
///
/// [`Error::InvalidOption`] for one that is too large.
pub(crate) fn check(request: &Request) -> Result<()> {
    check_value(request.value.as_deref().unwrap_or_default())?;
    at_most("holder", request.holder.len(), HOLDER)
}

/// Checks a candidate's value.
///
/// # Errors
///
/// Same as [`check`].
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    at_most("value", value.len(), VALUE)
}

fn at_most(option: &str, bytes: usize, most: usize) -> Result<()> {
    if bytes <= most {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: option.to_owned(),
        value: format!("{bytes} bytes"),
        allowed: format!("etcd takes at most {most} bytes"),
    })
}
