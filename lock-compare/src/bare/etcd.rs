//! Requests that only etcd's bare client can make.

use std::time::Duration;

use etcd_client::{Client, Txn, TxnOp};
use tokio::time::timeout;

use crate::Failure;

/// Longest wait of the second of two callers. etcd's services have no other way to try.
const TRY: Duration = Duration::from_secs(1);
/// Seconds, longer than the whole experiment.
const TTL: i64 = 60;

/// Returns the revision that created each of two keys.
pub(super) async fn create_revisions(
    addr: &str,
    keys: [&str; 2],
    together: bool,
) -> Result<[i64; 2], Failure> {
    let mut client = Client::connect([addr], None).await?;
    let puts = keys.map(|key| TxnOp::put(key, "1", None));
    let transactions =
        if together { vec![puts.to_vec()] } else { puts.map(|put| vec![put]).into() };
    for puts in transactions {
        client.txn(Txn::new().and_then(puts)).await?;
    }
    let mut found = [0; 2];
    for (key, found) in keys.iter().zip(&mut found) {
        let answer = client.get(*key, None).await?;
        *found = answer.kvs().first().ok_or("a key that was put is gone")?.create_revision();
    }
    Ok(found)
}

/// Returns the leader's value after the first and after the second campaign of one name, with one
/// lease or with two, in etcd's own election service.
pub(crate) async fn campaigns(
    addr: &str,
    name: &str,
    one_lease: bool,
) -> Result<[String; 2], Failure> {
    let mut client = Client::connect([addr], None).await?;
    let first = client.lease_grant(TTL, None).await?.id();
    let second = if one_lease { first } else { client.lease_grant(TTL, None).await?.id() };
    let before = campaign(&mut client, name, first, "first").await?;
    let after = campaign(&mut client, name, second, "second").await?;
    Ok([before, after])
}

/// Campaigns for a limited time. Returns the leader's value then.
async fn campaign(
    client: &mut Client,
    name: &str,
    lease: i64,
    value: &str,
) -> Result<String, Failure> {
    let campaign = timeout(TRY, client.campaign(name, value, lease)).await;
    if let Ok(campaign) = campaign {
        campaign?;
    }
    let leader = client.leader(name).await?;
    Ok(leader.kv().ok_or("nobody leads")?.value_str()?.to_owned())
}
