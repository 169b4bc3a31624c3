//! The token floor: the number that is added to create revisions.
//!
//! Its record is a key. Every transaction that acquires compares it with the record that the client
//! knows. So the client's copy may be old, and no request is needed beforehand: a transaction that
//! finds another record does nothing and returns that record, and the client sends it once more.

use std::sync::{Arc, Mutex};

use etcd_client::{Compare, CompareOp, proto::PbKeyValue};
use lock_core::{FencingToken, TokenFloor, keep::poison::lock};

use crate::error::Failure;

/// The record, as far as this client knows it.
#[derive(Debug)]
pub(crate) struct Floor {
    pub(crate) key: String,
    known: Mutex<Arc<Record>>,
}

/// The record at some moment. The default is no record.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Record {
    value: Option<Vec<u8>>,
    above: u64,
    /// The revision at which it was written.
    since: i64,
}

impl Record {
    /// Reads the record from a read of its key.
    ///
    /// # Errors
    ///
    /// If the value is no valid number: another program has written there.
    pub(crate) fn read(found: Option<&PbKeyValue>) -> Result<Self, Failure> {
        let Some(kv) = found else { return Ok(Self::default()) };
        let above = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
        let above = above.filter(|above| *above <= i64::MAX.unsigned_abs() / 2 + 1);
        let above = above.ok_or(Failure::senseless("the token floor's key has no number"))?;
        Ok(Self { value: Some(kv.value.clone()), above, since: kv.mod_revision })
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.value == other.value
    }

    /// A comparison that is true as long as this is the record.
    pub(crate) fn compare(&self, key: &str) -> Compare {
        match &self.value {
            Some(value) => Compare::value(key, CompareOp::Equal, value.clone()),
            None => Compare::create_revision(key, CompareOp::Equal, 0),
        }
    }

    /// Same as [`compare`](Self::compare), and also of when it was written.
    pub(crate) fn compare_exactly(&self, key: &str) -> [Compare; 2] {
        [self.compare(key), Compare::mod_revision(key, CompareOp::Equal, self.since)]
    }

    /// Whether it was written after the entry with this create revision was made. Such an entry
    /// counts from an earlier record, and is about to be ended.
    pub(crate) fn is_after(&self, revision: i64) -> bool {
        revision < self.since
    }

    pub(crate) fn above(&self) -> u64 {
        self.above
    }

    /// Returns the token of an entry with this create revision that was made since.
    pub(crate) fn token(&self, revision: i64) -> FencingToken {
        FencingToken::new(self.above.saturating_add(revision.unsigned_abs()))
    }

    /// Returns the create revision of the entry with this token, if it was made since.
    pub(crate) fn revision(&self, token: FencingToken) -> Option<i64> {
        let revision = i64::try_from(token.value().checked_sub(self.above)?).ok()?;
        (!self.is_after(revision)).then_some(revision)
    }

    pub(crate) fn newest(&self, revision: i64) -> TokenFloor {
        TokenFloor::new(FencingToken::new(self.above), self.token(revision))
    }
}

impl Floor {
    pub(crate) fn new(key: String) -> Self {
        Self { key, known: Mutex::default() }
    }

    pub(crate) fn known(&self) -> Arc<Record> {
        lock(&self.known).clone()
    }

    pub(crate) fn learn(&self, record: Record) -> Arc<Record> {
        let record = Arc::new(record);
        *lock(&self.known) = record.clone();
        record
    }
}
