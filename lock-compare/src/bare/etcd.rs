//! What only the bare client of etcd can ask.

use std::time::Duration;

use etcd_client::{CampaignResponse, Client, LockOptions, Txn, TxnOp};
use tokio::time::timeout;

use super::native::Twice;
use crate::Failure;

/// How long the second of two callers may wait. etcd's services know no other way to try.
const TRY: Duration = Duration::from_secs(1);
/// In seconds, longer than the whole experiment.
const TTL: i64 = 60;

/// Which revision created each of two keys.
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

/// One name, asked for twice.
pub(super) async fn same_lease(addr: &str, name: &str, one_lease: bool) -> Result<Twice, Failure> {
    let mut client = Client::connect([addr], None).await?;
    let first = client.lease_grant(TTL, None).await?.id();
    let second = if one_lease { first } else { client.lease_grant(TTL, None).await?.id() };
    let lock = format!("{name}/lock");
    let a = locked(&mut client, &lock, first).await?.ok_or("a free lock is not granted")?;
    let b = locked(&mut client, &lock, second).await?;
    client.unlock(a.clone()).await?;
    let third = client.lease_grant(TTL, None).await?.id();
    let third_got_in = locked(&mut client, &lock, third).await?.is_some();
    let values = campaigns(&mut client, &format!("{name}/election"), first, second).await?;
    let text = |key: Vec<u8>| String::from_utf8_lossy(&key).into_owned();
    Ok(Twice { keys: (text(a), b.map(text)), third_got_in, values })
}

async fn locked(client: &mut Client, name: &str, lease: i64) -> Result<Option<Vec<u8>>, Failure> {
    let options = LockOptions::new().with_lease(lease);
    match timeout(TRY, client.lock(name, Some(options))).await {
        Ok(locked) => Ok(Some(locked?.key().to_vec())),
        Err(_) => Ok(None),
    }
}

/// What the leader says after the first and after the second campaign.
async fn campaigns(
    client: &mut Client,
    name: &str,
    first: i64,
    second: i64,
) -> Result<(String, String), Failure> {
    let mut said = Vec::new();
    for (lease, value) in [(first, "first"), (second, "second")] {
        let campaign = timeout(TRY, client.campaign(name, value, lease)).await;
        let _: Option<CampaignResponse> = campaign.ok().transpose()?;
        let leader = client.leader(name).await?;
        let value = leader.kv().ok_or("nobody leads")?.value_str()?;
        said.push(value.to_owned());
    }
    Ok((said[0].clone(), said[1].clone()))
}
