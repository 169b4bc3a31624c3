//! Publishing a value: it replaces the old one.

use etcd_client::{Compare, CompareOp, GetOptions, Txn, TxnOp};

use crate::{
    error::Failure,
    session::attempt::{Hold, OwnEntry},
    wire::{
        connection::GiveUp,
        requests::{commit, firsts, put, revision, stands},
    },
};

impl Hold {
    /// Publishes a new value. Returns whether the entry still stands.
    pub(crate) async fn publish(
        &mut self,
        value: &[u8],
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<bool, Failure> {
        let OwnEntry { store, session, key, modified, .. } = &mut self.entry;
        loop {
            let txn = publish(key, session.lease, self.revision, *modified, value);
            let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
            if answer.succeeded() {
                *modified = revision(answer.header())?;
                return Ok(true);
            }
            match firsts(answer).next().flatten().filter(|kv| kv.create_revision == self.revision) {
                None => return Ok(false),
                // An earlier sending took effect: send once more after it, which changes nothing.
                Some(found) => *modified = found.mod_revision,
            }
        }
    }
}

/// The transaction that publishes a value, if the entry still stands. It compares the entry's last
/// known modification, so a late sending does not replace a newer value with an old one. The
/// entry's create revision stays.
fn publish(key: &str, lease: i64, created: i64, modified: i64, value: &[u8]) -> Txn {
    Txn::new()
        .when([stands(key, created), Compare::mod_revision(key, CompareOp::Equal, modified)])
        .and_then([put(key, lease, value)])
        .or_else([TxnOp::get(key, Some(GetOptions::new().with_keys_only()))])
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
        let publish = |value, modified| publish("a/1.0.v", lease, created, modified, value);
        let late = publish(b"second", created);
        let sent = client.txn(late.clone()).await.unwrap();
        let newer = publish(b"third", sent.header().unwrap().revision());
        assert!(client.txn(newer).await.unwrap().succeeded());
        assert!(!client.txn(late).await.unwrap().succeeded());
        let kv = client.get("a/1.0.v", None).await.unwrap().take_kvs().remove(0);
        assert_eq!((kv.value(), kv.create_revision(), kv.lease()), (&b"third"[..], created, lease));
    }
}
