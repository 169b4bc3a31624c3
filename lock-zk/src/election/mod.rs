//! Elections: the leader and its values, as observers are told of them.

pub(crate) mod observe;
