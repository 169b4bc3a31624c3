//! Communication with etcd: connections, requests and answers, and the names of watches.

pub(crate) mod cautions;
pub(crate) mod connection;
pub(crate) mod dial;
mod failover;
pub(crate) mod lanes;
pub(crate) mod leases;
pub(crate) mod login;
pub(crate) mod member;
pub(crate) mod reads;
pub(crate) mod removals;
pub(crate) mod requests;
pub(crate) mod revisions;
pub(crate) mod tls_error;
pub(crate) mod watches;
