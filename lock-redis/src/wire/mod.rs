//! The way to the server: connections, scripts and their answers.

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod client_id;
pub(crate) mod connection;
pub(crate) mod data;
pub(crate) mod dial;
pub(crate) mod failure;
mod hello;
pub(crate) mod info;
pub(crate) mod line;
pub(crate) mod lua;
mod pipe;
pub(crate) mod scan;
pub(crate) mod script;
pub(crate) mod sentinel;
pub(crate) mod slots;
pub(crate) mod snapshot;
pub(crate) mod transport;
mod waited;
