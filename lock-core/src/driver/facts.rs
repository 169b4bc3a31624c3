//! What a store says beside a grant.

/// What a store said about itself with the answer that made a grant's entry: numbers by their name.
/// For logs, and for requests of your own to the same store; nothing is decided by them here.
///
/// | store | names |
/// |---|---|
/// | etcd | `revision`, `cluster_id`, `member_id`, `raft_term`: the header of the answer, as `Header()` of Go's `concurrency.Mutex`. `etcdctl` shows the ids in hexadecimal |
/// | ZooKeeper | `czxid`: the transaction that made the node |
/// | others | none |
///
/// The entry is made when the attempt joins the queue: after a wait that is earlier than the grant. An
/// upgrade and an adoption make them anew.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts(Vec<(&'static str, u64)>);

impl Facts {
    /// For drivers: facts by their names.
    pub fn new(facts: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        Self(facts.into_iter().collect())
    }

    /// The fact with this name, where the store said it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(known, _)| *known == name).map(|(_, fact)| fact)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }
}
