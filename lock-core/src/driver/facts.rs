//! Facts that a store reports beside a grant.

/// Numbers, by name, that a store reported about itself when it made a grant's entry. They are for
/// logs, and for your own requests to the same store; distlock does not use them.
///
/// | store | names |
/// |---|---|
/// | etcd | `revision`, `cluster_id`, `member_id`, `raft_term`: the header of the answer, like `Header()` of Go's `concurrency.Mutex`. `etcdctl` shows the ids in hexadecimal |
/// | ZooKeeper | `czxid`: the transaction that made the node |
/// | others | none |
///
/// The entry is made when the attempt joins the queue; after a wait, that is earlier than the
/// grant. An upgrade and an adoption make new facts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts(Vec<(&'static str, u64)>);

impl Facts {
    /// For drivers: facts by their names.
    pub fn new(facts: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        Self(facts.into_iter().collect())
    }

    /// The fact with this name, if the store reported it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(known, _)| *known == name).map(|(_, fact)| fact)
    }

    /// All facts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }
}
