//! The way to the servers: their addresses, requests and answers, watches, and questions before
//! there is a session.

pub(crate) mod cautions;
pub(crate) mod dial;
pub(crate) mod given_client;
pub(crate) mod login;
pub(crate) mod nodelay;
pub(crate) mod questions;
pub(crate) mod requests;
pub(crate) mod route;
mod same_process;
pub(crate) mod tls_error;
mod tunnel;
pub(crate) mod watches;
