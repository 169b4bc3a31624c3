//! The token floor: what is added to create revisions.
//!
//! Its record is a key that every transaction that acquires compares with what the client knows of
//! it. So what the client knows may be as old as it likes, and nothing is asked for it beforehand: a
//! transaction that finds another record does nothing, answers it, and is sent once more.

use std::sync::{Arc, Mutex, PoisonError};

use etcd_client::{Compare, CompareOp, GetOptions, Txn, TxnOp, proto::PbKeyValue};
use lock_core::{Clock, FencingToken, LockName, Result, TokenFloor};
use uuid::Uuid;

use crate::{
    connection::{Connection, Word},
    entry,
    error::Failure,
    layout::queue_of,
    reads,
    requests::{Header, ranges, send_txn},
    store::Store,
};

/// How long an operator's request is sent again.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// The record, as far as this client knows it.
#[derive(Debug)]
pub(crate) struct Floor {
    pub(crate) key: String,
    known: Mutex<Arc<Record>>,
}

/// The record at some moment; the default is none.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Record {
    value: Option<Vec<u8>>,
    above: u64,
    /// When it was written.
    since: i64,
}

impl Record {
    /// By what a read of the key found.
    ///
    /// # Errors
    ///
    /// If somebody else has written there.
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

    /// True in a transaction as long as this is the record.
    pub(crate) fn compare(&self, key: &str) -> Compare {
        match &self.value {
            Some(value) => Compare::value(key, CompareOp::Equal, value.clone()),
            None => Compare::create_revision(key, CompareOp::Equal, 0),
        }
    }

    /// As [`compare`](Self::compare), also of when it was written.
    pub(crate) fn compare_exactly(&self, key: &str) -> [Compare; 2] {
        [self.compare(key), Compare::mod_revision(key, CompareOp::Equal, self.since)]
    }

    /// Whether it was written after an entry with this create revision was made, which counts from an
    /// earlier record and is about to be ended.
    pub(crate) fn is_after(&self, revision: i64) -> bool {
        revision < self.since
    }

    pub(crate) fn above(&self) -> u64 {
        self.above
    }

    /// The token of an entry with this create revision that was made since.
    pub(crate) fn token(&self, revision: i64) -> FencingToken {
        FencingToken::new(self.above.saturating_add(revision.unsigned_abs()))
    }

    /// The create revision of the entry with this token, if it was made since.
    pub(crate) fn revision(&self, token: FencingToken) -> Option<i64> {
        let revision = i64::try_from(token.value().checked_sub(self.above)?).ok()?;
        (!self.is_after(revision)).then_some(revision)
    }

    fn newest(&self, revision: i64) -> TokenFloor {
        TokenFloor::new(FencingToken::new(self.above), self.token(revision))
    }
}

impl Floor {
    pub(crate) fn new(key: String) -> Self {
        Self { key, known: Mutex::default() }
    }

    pub(crate) fn known(&self) -> Arc<Record> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn learn(&self, record: Record) -> Arc<Record> {
        let record = Arc::new(record);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = record.clone();
        record
    }

    /// Reads it.
    pub(crate) async fn refresh(&self, connection: &Connection) -> Result<Arc<Record>, Failure> {
        self.ask(connection).await.map(|(record, _)| record)
    }

    /// The record, and the store's revision.
    async fn ask(&self, connection: &Connection) -> Result<(Arc<Record>, i64), Failure> {
        let get = |member: &crate::connection::Member| {
            let (mut kv, key) = (member.kv.clone(), self.key.clone());
            async move { kv.get(key, Some(GetOptions::new())).await }
        };
        let answer = connection.look(Word::Leader, get).await?;
        let revision = Header::of(answer.header()).revision();
        Ok((self.learn(Record::read(answer.0.kvs.first())?), revision))
    }
}

/// How far tokens have come.
pub(crate) async fn read(store: &Store) -> Result<TokenFloor> {
    let asked = store.floor.ask(&store.connection).await;
    let (record, revision) = asked.map_err(|failure| failure.into_error("token floor", false))?;
    Ok(record.newest(revision))
}

/// Raises the floor, unless it is as high. Of two who do so at once, the second finds the first one's.
pub(crate) async fn raise(store: &Store, above: FencingToken) -> Result<TokenFloor> {
    let failed = |failure: Failure| failure.into_error("raise the token floor", true);
    let (mut record, mut revision) = store.floor.ask(&store.connection).await.map_err(failed)?;
    let until = Clock::Boot.now() + PATIENCE;
    while record.above < above.value() {
        let key = &*store.floor.key;
        // The read of the same transaction sees what it writes.
        let txn = Txn::new()
            .when([record.compare(key)])
            .and_then([TxnOp::put(key, above.to_string(), None), TxnOp::get(key, None)])
            .or_else([TxnOp::get(key, None)]);
        let give_up = || Clock::Boot.now() >= until;
        let sent = store.connection.insist(give_up, |member| send_txn(member, &txn)).await;
        let answer = sent.result.map_err(failed)?;
        revision = Header::of(answer.header()).revision();
        let found = ranges(answer).next().and_then(|range| range.kvs.into_iter().next());
        record = store.floor.learn(Record::read(found.as_ref()).map_err(failed)?);
    }
    Ok(record.newest(revision))
}

/// The attempts with entries that were made before the floor was raised the last time.
pub(crate) async fn before(store: &Store) -> Result<Vec<(LockName, Uuid)>> {
    let failed = |failure: Failure| failure.into_error("raise the token floor", true);
    let record = store.floor.refresh(&store.connection).await.map_err(failed)?;
    let Some((mut from, to)) = store.layout.names("") else { return Ok(Vec::new()) };
    let mut names = std::collections::BTreeSet::new();
    loop {
        let page = reads::page(&store.connection, &from, &to).await;
        let (places, next) = page.map_err(failed)?;
        let old = places.iter().filter(|place| record.is_after(place.revision));
        names.extend(old.filter_map(|place| store.layout.name(queue_of(&place.key))));
        let Some(next) = next else { break };
        from = next;
    }
    let mut found = Vec::new();
    for name in names {
        let queue = store.layout.queue(&name)?;
        let standing = reads::inspect(&store.connection, &queue).await.map_err(failed)?;
        let old = standing.iter().filter(|entry| record.is_after(entry.place.revision));
        let attempts = old.filter_map(|entry| entry::attempt(&entry.note));
        found.extend(attempts.map(|attempt| (name.clone(), attempt)));
    }
    Ok(found)
}
