//! Which data a server has: a server that took over has others than the one before.

use super::info::Info;
use crate::config::Address;

/// The field of `INFO` that names the history of a server's data.
pub(super) const ID: &str = "master_replid";

/// The server of a connection and the history of its data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Data {
    address: Address,
    /// `master_replid`, if it may be asked for: changes when a replica becomes the primary, and when
    /// a server starts without its data.
    id: Option<String>,
    /// `master_replid2`: the history that a promoted replica goes on with.
    earlier: Option<String>,
}

impl Data {
    /// Reads the answer of `INFO`; without one, only the address is known.
    pub(crate) fn read(address: &Address, info: &Info) -> Self {
        Self {
            address: address.clone(),
            id: info.field(ID).map(str::to_owned),
            earlier: info.field("master_replid2").map(str::to_owned),
        }
    }

    /// Returns the same data as if a server at this address had had them. Of two servers of a
    /// cluster, only one that was promoted takes over: the other one may have got a slot.
    pub(crate) fn at(&self, address: &Address) -> Self {
        // Without its history, only the address tells servers apart.
        let address = if self.id.is_some() { address } else { &self.address };
        Self { address: address.clone(), ..self.clone() }
    }

    /// Whether this server took over from the one before: it is another one, or a replica that was
    /// promoted. A server that started again is the same one, whether it has its data or not.
    pub(crate) fn took_over_from(&self, before: &Self) -> bool {
        if self.id.is_none() || before.id.is_none() {
            return self.address != before.address;
        }
        // A primary changes its id also when its first replica comes, and then has no earlier one.
        let has_earlier = self.earlier.as_ref().is_some_and(|id| id.bytes().any(|b| b != b'0'));
        let promoted = has_earlier && self.earlier != before.earlier;
        self.id != before.id && (self.address != before.address || promoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(port: u16, id: &str, earlier: &str) -> Data {
        let text = format!(
            "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmaster_replid:{id}\r\n\
             master_replid2:{earlier}\r\n"
        );
        Data::read(&Address::new("h", port), &Info::from(&*text))
    }

    #[test]
    fn a_promoted_replica_took_over_and_a_restarted_server_did_not() {
        let before = data(1, "aa", "00");
        assert!(data(2, "bb", "aa").took_over_from(&before));
        assert!(data(1, "bb", "aa").took_over_from(&before));
        assert!(data(2, "cc", "00").took_over_from(&before));
        assert!(!data(1, "cc", "00").took_over_from(&before));
        assert!(!data(1, "aa", "00").took_over_from(&before));
        // The first replica came after the client, and then took over.
        assert!(data(1, "bb", "dd").took_over_from(&before));
        assert!(!data(1, "cc", "aa").took_over_from(&data(1, "bb", "aa")));
        let hidden = |port| Data::read(&Address::new("h", port), &Info::default());
        assert!(hidden(2).took_over_from(&before));
        assert!(!hidden(1).took_over_from(&before));
    }
}
