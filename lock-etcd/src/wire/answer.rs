//! Reads the parts of answers.

use etcd_client::{
    GetResponse, LeaseTimeToLiveResponse, ResponseHeader, TxnResponse,
    proto::{PbKeyValue, PbRangeResponse, PbResponseHeader, PbTxnOpResponse},
};
use lock_core::Facts;

use crate::{error::Failure, wire::revisions::Stamped};

pub(crate) type Answer<T> = Result<T, etcd_client::Error>;

/// The header of an answer: the member that answered, its cluster and term, and the revision.
pub(crate) type Header = PbResponseHeader;

/// Returns what a header tells beside a grant.
pub(crate) fn facts(header: &Header) -> Facts {
    Facts::new([
        ("revision", header.revision.unsigned_abs()),
        ("cluster_id", header.cluster_id),
        ("member_id", header.member_id),
        ("raft_term", header.raft_term),
    ])
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

pub(crate) fn header(header: Option<&ResponseHeader>) -> Result<Header, Failure> {
    header.map(|header| header.0).ok_or(Failure::senseless("no header"))
}

pub(crate) fn revision(of: Option<&ResponseHeader>) -> Result<i64, Failure> {
    header(of).map(|header| header.revision)
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
