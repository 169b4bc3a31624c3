//! The way to the server: connections, scripts, and what they answer.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod script;
pub(crate) mod snapshot;
pub(crate) mod transport;
