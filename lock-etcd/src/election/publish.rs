//! Publishing a value: it replaces the old one.

use etcd_client::{Compare, CompareOp, GetOptions, Txn, TxnOp};

use crate::{
    error::Failure,
    wire::{
        answer::{ranges, revision},
        connection::Connection,
        requests::{commit, put, stands},
    },
};

/// A new value for an entry.
pub(crate) struct Publish<'a> {
    pub(crate) key: &'a str,
    pub(crate) lease: i64,
    /// The entry's create revision, which stays.
    pub(crate) revision: i64,
    pub(crate) value: &'a [u8],
}

impl Publish<'_> {
    /// Publishes the value if the entry still stands. Returns whether it does. `modified` is the
    /// entry's last known modification. Each sending compares it, so a late one does not replace a
    /// newer value with an old one.
    pub(crate) async fn send(
        &self,
        connection: &Connection,
        modified: &mut i64,
        in_doubt: &mut bool,
        give_up: impl Fn() -> bool,
    ) -> Result<bool, Failure> {
        loop {
            let answer = commit(connection, &self.txn(*modified), in_doubt, &give_up).await?;
            if answer.succeeded() {
                *modified = revision(answer.header())?;
                return Ok(true);
            }
            let found = ranges(answer).next().and_then(|range| range.kvs.into_iter().next());
            match found.filter(|kv| kv.create_revision == self.revision) {
                None => return Ok(false),
                // An earlier sending took effect: send once more after it, which changes nothing.
                Some(found) => *modified = found.mod_revision,
            }
        }
    }

    fn txn(&self, modified: i64) -> Txn {
        Txn::new()
            .when([
                stands(self.key, self.revision),
                Compare::mod_revision(self.key, CompareOp::Equal, modified),
            ])
            .and_then([put(self.key, self.lease, self.value)])
            .or_else([TxnOp::get(self.key, Some(GetOptions::new().with_keys_only()))])
    }
}

#[cfg(test)]
mod tests {
    use etcd_client::{Client, PutOptions};

    use super::*;

    #[tokio::test]
    async fn a_late_sending_puts_no_old_value_in_the_place_of_a_newer_one() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let mut client = Client::connect([etcd.addr().to_string()], None).await.unwrap();
        let lease = client.lease_grant(60, None).await.unwrap().id();
        let options = PutOptions::new().with_lease(lease);
        let put = client.put("a/1.0.v", "first", Some(options)).await.unwrap();
        let created = put.header().unwrap().revision();
        let publish = |value| Publish { key: "a/1.0.v", lease, revision: created, value };
        let late = publish(b"second").txn(created);
        let sent = client.txn(late.clone()).await.unwrap();
        let newer = publish(b"third").txn(revision(sent.header()).unwrap());
        assert!(client.txn(newer).await.unwrap().succeeded());
        assert!(!client.txn(late).await.unwrap().succeeded());
        let kv = client.get("a/1.0.v", None).await.unwrap().take_kvs().remove(0);
        assert_eq!((kv.value(), kv.create_revision(), kv.lease()), (&b"third"[..], created, lease));
    }
}
