//! The way to the servers: their addresses, requests and answers, watches, and questions before
//! there is a session.

pub(crate) mod connection;
pub(crate) mod nodelay;
pub(crate) mod own_client;
pub(crate) mod probe;
pub(crate) mod requests;
pub(crate) mod turns;
pub(crate) mod watches;
