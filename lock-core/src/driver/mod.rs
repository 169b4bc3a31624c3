//! The traits of a driver, and the values that pass between it and the API.

pub(crate) mod boxed;
pub(crate) mod diagnosis;
pub mod duration;
pub(crate) mod entry;
pub(crate) mod facts;
pub(crate) mod floor;
pub(crate) mod guarantees;
pub(crate) mod layout;
pub(crate) mod leader;
pub(crate) mod loss;
pub(crate) mod mark;
pub(crate) mod meter;
pub(crate) mod name;
pub(crate) mod overlap;
mod parse;
pub(crate) mod reach;
pub(crate) mod refusals;
pub(crate) mod request;
pub(crate) mod requirement;
pub(crate) mod ticket;
pub(crate) mod token;
pub mod trace;
pub(crate) mod traits;
pub mod validity;
pub(crate) mod worded;
