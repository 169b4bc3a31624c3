//! Reads the parts of answers.

use etcd_client::{
    GetResponse, LeaseTimeToLiveResponse, ResponseHeader, TxnResponse,
    proto::{PbKeyValue, PbRangeResponse, PbTxnOpResponse},
};
use lock_core::Facts;

use crate::{error::Failure, wire::revisions::Stamped};

pub(crate) type Answer<T> = Result<T, etcd_client::Error>;

/// The header of an answer: the member that answered, its cluster and term, and the revision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    revision: i64,
    cluster: u64,
    member: u64,
    term: u64,
}

impl Header {
    pub(crate) fn of(header: Option<&ResponseHeader>) -> Self {
        header.map_or(Self::default(), |header| Self {
            revision: header.revision(),
            cluster: header.cluster_id(),
            member: header.member_id(),
            term: header.raft_term(),
        })
    }

    pub(crate) fn revision(self) -> i64 {
        self.revision
    }

    pub(crate) fn facts(self) -> Facts {
        Facts::new([
            ("revision", self.revision.unsigned_abs()),
            ("cluster_id", self.cluster),
            ("member_id", self.member),
            ("raft_term", self.term),
        ])
    }
}

impl Stamped for GetResponse {
    fn revision(&self) -> Option<i64> {
        self.header().map(ResponseHeader::revision)
    }
}

impl Stamped for TxnResponse {
    fn revision(&self) -> Option<i64> {
        self.header().map(ResponseHeader::revision)
    }
}

/// A lease's answers are those of the member, not of the store.
impl Stamped for LeaseTimeToLiveResponse {}

/// A granted TTL.
impl Stamped for u64 {}

impl Stamped for () {}

pub(crate) fn revision(header: Option<&ResponseHeader>) -> Result<i64, Failure> {
    header.map(ResponseHeader::revision).ok_or(Failure::senseless("no header"))
}

/// Returns the first key of each read of a transaction.
pub(crate) fn firsts(answer: TxnResponse) -> impl Iterator<Item = Option<PbKeyValue>> {
    ranges(answer).map(|range| range.kvs.into_iter().next())
}

pub(crate) fn ranges(answer: TxnResponse) -> impl Iterator<Item = PbRangeResponse> {
    answer.0.responses.into_iter().filter_map(|op| match op.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => Some(range),
        _ => None,
    })
}
