//! The record of the token floor: the number that is added to transaction ids.

use lock_core::{Effect, Error, FencingToken, Result, keep::errors::rejected};
use zookeeper_client::Stat;

use crate::error::STORE;

/// The number that is added to the transaction ids of newer nodes. By default 0, for all nodes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Above {
    pub(crate) number: u64,
    /// The transaction that wrote the record.
    pub(crate) since: i64,
}

impl Above {
    /// Returns the token of a node; `None` if the node is older than the record, and counts from a
    /// floor that is not known any more.
    pub(crate) fn token(self, stat: &Stat) -> Option<FencingToken> {
        (!self.is_after(stat)).then(|| self.token_of(stat.czxid))
    }

    /// Whether the floor was raised after this node was made.
    pub(crate) fn is_after(self, stat: &Stat) -> bool {
        stat.czxid < self.since
    }

    pub(crate) fn token_of(self, id: i64) -> FencingToken {
        // Transaction ids are positive.
        FencingToken::new(self.number.saturating_add(id.unsigned_abs()))
    }

    /// Reads the record from its node. One that was made without data, and never written, has none.
    pub(crate) fn read(path: &str, data: &[u8], stat: &Stat) -> Result<Self> {
        if data.is_empty() && stat.version == 0 {
            return Ok(Self::default());
        }
        let number = std::str::from_utf8(data).ok().and_then(|text| text.parse().ok());
        let number = number.filter(|number| *number <= i64::MAX.unsigned_abs() / 2 + 1);
        number.map(|number| Self { number, since: stat.mzxid }).ok_or_else(|| {
            broken(format!("the data of {path}, the token floor's node, is no number up to 2^62"))
        })
    }
}

/// The error if something else is in the record's place.
pub(crate) fn broken(why: String) -> Error {
    rejected(STORE, "token floor", Effect::None, why)
}
