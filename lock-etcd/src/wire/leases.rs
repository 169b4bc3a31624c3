//! The requests for etcd's leases.

use std::time::Duration;

use lock_core::{Clock, Instant};
use uuid::Uuid;

use crate::{
    error::{Failure, FailureKind},
    wire::{
        connection::{BACKOFF, Connection, GiveUp, Word},
        member::{Answer, Member},
    },
};

/// Makes a lease with an id of our own. Returns the TTL that etcd granted, in seconds.
pub(crate) fn send_grant(
    member: &Member,
    lease: i64,
    seconds: u64,
) -> impl Future<Output = Answer<u64>> + Send + use<> {
    let mut leases = member.client.lease_client();
    let options = etcd_client::LeaseGrantOptions::new().with_id(lease);
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    async move {
        let granted = leases.grant(seconds, Some(options)).await?;
        Ok(granted.ttl().unsigned_abs())
    }
}

/// Makes a lease. After a failure that may pass it tries again, unless `again` returns false. Each
/// try has another id, so the lease of an unanswered request is unused and ends by itself. Returns
/// the lease, the TTL that etcd granted, and when the answered request was sent.
pub(crate) async fn grant(
    connection: &Connection,
    ttl: Duration,
    again: impl Fn(&Failure) -> bool,
) -> Result<(i64, Duration, Instant), Failure> {
    let mut pause = BACKOFF;
    loop {
        let (lease, sent) = (new_lease(), Clock::Boot.now());
        match connection.call(Word::Leader, |member| send_grant(member, lease, ttl.as_secs())).await
        {
            Ok(seconds) => return Ok((lease, Duration::from_secs(seconds), sent)),
            Err(failure) if failure.kind.is_passing() && again(&failure) => {}
            Err(failure) => return Err(failure),
        }
        pause.wait().await;
    }
}

/// Returns a unique lease id: 63 random bits. etcd's own ids are no better.
pub(crate) fn new_lease() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // The fixed bits of a UUID are in the middle; folding hides them.
    let id = (high ^ low.rotate_left(32)) >> 1;
    i64::try_from(id).unwrap_or(i64::MAX).max(1)
}

/// Returns how long a lease lasts unless it is renewed, in whole seconds; `None` if it is over.
pub(crate) async fn ttl_left(
    connection: &Connection,
    lease: i64,
) -> Result<Option<Duration>, Failure> {
    let ask = |member: &Member| {
        let mut leases = member.client.lease_client();
        async move { leases.time_to_live(lease, None).await }
    };
    // The leader answers by its own clock, even if it is cut off.
    let left = connection.look(Word::Member, ask).await?.ttl();
    Ok(u64::try_from(left).ok().map(Duration::from_secs))
}

/// Ends a lease and deletes its keys. Returns `Ok` also if the lease had ended before.
pub(crate) async fn revoke(
    connection: &Connection,
    lease: i64,
    give_up: GiveUp<'_>,
) -> Result<(), Failure> {
    let send = |member: &Member| {
        let mut leases = member.client.lease_client();
        async move { leases.revoke(lease).await.map(drop) }
    };
    match connection.insist(&mut false, give_up, send).await {
        Err(failure) if failure.kind == FailureKind::LeaseGone => Ok(()),
        result => result,
    }
}
