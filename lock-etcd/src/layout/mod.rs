//! The data in etcd: keys, notes and the token floor, and how they are read back.

pub(crate) mod floor;
pub(crate) mod keys;
pub(crate) mod listing;
pub(crate) mod note;
