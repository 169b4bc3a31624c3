//! Layout of the data in the store: keys, and the texts in them.

pub(crate) mod key;
pub(crate) mod kind;
pub(crate) mod ticket;
