//! How often a driver renews within a TTL.
//!
//! | store | renewals in each TTL |
//! |---|---|
//! | etcd, Redis, PostgreSQL, memory | [`RENEWALS_PER_TTL`] |
//! | SQLite, MySQL, Redis with `mode=simple`, [`polling`](crate::polling) | [`RENEWALS_WITHOUT_PUSHES`] |
//! | ZooKeeper | by a rule of its own: `session/proof.rs` of its driver |
//!
//! What a renewal is, and which locks go together, stands in `session/renewal.rs` of each driver.

/// How often a lock is renewed in each TTL: 3.
pub const RENEWALS_PER_TTL: u32 = 3;

/// The same where the store does not announce that a lock was revoked, so the client must ask: 8.
pub const RENEWALS_WITHOUT_PUSHES: u32 = 8;

/// After a failed renewal the next one comes within this part of the TTL: a tenth.
pub const RETRIES_PER_TTL: u32 = 10;
