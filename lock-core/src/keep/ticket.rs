//! Tickets whose place a driver cannot read.

use crate::Error;

/// The error for a place that no ticket of this store has. `form` says how a place looks.
pub fn unreadable(store: &'static str, place: &str, form: &str) -> Error {
    Error::InvalidOption {
        option: "ticket".to_owned(),
        value: place.chars().take(8).collect(),
        allowed: format!("the place in a ticket of {store} is {form}"),
    }
}
