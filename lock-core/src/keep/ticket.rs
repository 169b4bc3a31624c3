//! Tickets whose place a driver cannot read.

use crate::{Error, keep::errors::invalid};

/// The error for a place that no ticket of this store has. `form` says how a place looks.
pub fn unreadable(store: &'static str, place: &str, form: &str) -> Error {
    let start: String = place.chars().take(8).collect();
    invalid("ticket", start, format!("the place in a ticket of {store} is {form}"))
}
