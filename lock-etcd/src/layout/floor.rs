//! The token floor: the number that is added to create revisions.
//!
//! Its record is a key. The transaction that makes the key of a [session](crate::session) reads it,
//! and all tokens of the session count from it. A raise writes the record and deletes the keys of
//! all sessions, in one transaction. An acquiring transaction compares the key of its session, so
//! no session from before a raise enters a queue after it.

use etcd_client::{Compare, CompareOp, proto::PbKeyValue};
use lock_core::{FencingToken, TokenFloor};

use crate::error::Failure;

/// The record at some moment. The default is no record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub(crate) above: u64,
    /// The revision at which it was written.
    since: i64,
}

impl Record {
    /// Reads the record from a read of its key. Fails if the value is no valid number: another
    /// program has written there.
    pub(crate) fn read(found: Option<&PbKeyValue>) -> Result<Self, Failure> {
        let Some(kv) = found else { return Ok(Self::default()) };
        let above = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
        let above = above.filter(|above| *above <= i64::MAX.unsigned_abs() / 2 + 1);
        let above = above.ok_or(Failure::senseless("the token floor's key has no number"))?;
        Ok(Self { above, since: kv.mod_revision })
    }

    /// A comparison that is true as long as this is the record.
    pub(crate) fn compare(&self, key: &str) -> Compare {
        Compare::mod_revision(key, CompareOp::Equal, self.since)
    }

    /// Whether it was written after the entry with this create revision was made. Such an entry
    /// counts from an earlier record, and is about to be ended.
    pub(crate) fn is_after(&self, revision: i64) -> bool {
        revision < self.since
    }

    /// Returns the token of an entry with this create revision.
    pub(crate) fn token(&self, revision: i64) -> FencingToken {
        FencingToken::new(self.above.saturating_add(revision.unsigned_abs()))
    }

    /// Returns the create revision of the entry with this token, if there can be one.
    pub(crate) fn revision(&self, token: FencingToken) -> Option<i64> {
        i64::try_from(token.value().checked_sub(self.above)?).ok()
    }

    pub(crate) fn newest(&self, revision: i64) -> TokenFloor {
        TokenFloor::new(FencingToken::new(self.above), self.token(revision))
    }
}
