//! The way to the store.

pub(crate) mod network;
