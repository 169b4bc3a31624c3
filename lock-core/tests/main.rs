//! What the features of this crate show to its users.

#[cfg(feature = "serde")]
mod serde;
