//! At most one candidate leads, and all observers see the leaders, in order. Go's
//! `concurrency.Election` reports no vacancy; with curator's `LeaderLatch` two clients believed
//! that they lead (CURATOR-84).

use super::{Client, Done, Failure, Harness, ensure, property, scene::*};
use crate::{Election, LockKind, LockName, Observer, Owner};

property!(
    one_leads_and_all_see_it,
    newer_and_newer_values,
    a_leader_that_campaigns_again_proclaims,
    the_next_in_line_leads,
    a_crashed_leader_is_replaced,
    an_observer_that_was_cut_off,
    a_lock_and_an_election_of_one_name,
);

fn election(h: &dyn Harness, client: &dyn Client, name: &LockName) -> Result<Election, Failure> {
    needs_kind(client, LockKind::Election)?;
    Ok(client.locks().election(name)?.ttl(h.ttl()))
}

/// Waits until the observer reports this, and fails if it reports something else before.
async fn reports(observer: &mut Observer, value: Option<&str>) -> Done {
    let now = next(observer).await?;
    let seen = now.as_ref().map(|leader| String::from_utf8_lossy(&leader.value).into_owned());
    ensure!(seen.as_deref() == value, "observed {seen:?} instead of {value:?}");
    Ok(())
}

async fn one_leads_and_all_see_it(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("lead"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    ensure!(soon("leader", there.leader()).await??.is_none(), "somebody leads an empty election");
    let leading = soon("campaign", here.campaign("first")).await??;
    for from in [&here, &there] {
        let seen = soon("leader", from.leader()).await??.ok_or("nobody is seen to lead")?;
        ensure!(seen.value == b"first", "the value is {:?}", seen.value);
        ensure!(seen.token == leading.token(), "the token is {}", seen.token);
    }
    let second = soon("try", there.try_campaign("second")).await??;
    ensure!(second.is_none(), "two lead at the same time");
    soon("resign", leading.resign()).await??;
    let leader = soon("leader", there.leader()).await??;
    ensure!(leader.is_none(), "somebody leads after the resignation");
    nothing_left(h).await
}

/// Values of one leader, of the next, and the vacancies between them. An observer may leave out
/// values that were replaced before it looked.
async fn newer_and_newer_values(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("order"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let mut observer = soon("observe", there.observe()).await??;
    reports(&mut observer, None).await?;
    for round in 0..3 {
        let mut leading = soon("campaign", here.campaign(format!("{round}"))).await??;
        reports(&mut observer, Some(&format!("{round}"))).await?;
        for n in 0..3 {
            soon("proclaim", leading.proclaim(format!("{round}.{n}"))).await??;
        }
        let values = [0, 1, 2].map(|n| format!("{round}.{n}"));
        let mut left = values.iter();
        while left.len() > 0 {
            let leader = next(&mut observer).await?.ok_or("nobody is seen to lead")?;
            let value = String::from_utf8(leader.value)?;
            ensure!(left.any(|next| *next == value), "{value} is told late, or twice");
        }
        soon("resign", leading.resign()).await??;
        reports(&mut observer, None).await?;
    }
    drop(observer);
    nothing_left(h).await
}

/// Like `Campaign` of Go's package in the session that leads: it does not wait for itself, and the
/// others wait until the last of its leaderships is over.
async fn a_leader_that_campaigns_again_proclaims(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("again"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let here = here.owner(&Owner::new());
    let mut observer = soon("observe", there.observe()).await??;
    reports(&mut observer, None).await?;
    let first = soon("campaign", here.campaign("first")).await??;
    reports(&mut observer, Some("first")).await?;
    let next = tokio::spawn(there.campaign("next"));
    wait_for_queue(&*a, &name, 2).await?;
    let second = promised("a leader's second campaign", here.campaign("second")).await??;
    reports(&mut observer, Some("second")).await?;
    let third = soon("try", here.try_campaign("third")).await??;
    let third = third.ok_or("a leader's try is refused")?;
    reports(&mut observer, Some("third")).await?;
    let tokens = [first.token(), second.token(), third.token()];
    ensure!(tokens.iter().all(|token| *token == tokens[0]), "the tokens are {tokens:?}");
    for early in [third, first] {
        soon("resign", early.resign()).await??;
    }
    let seen = soon("leader", there.leader()).await??;
    let seen = seen.map(|leader| (leader.token, leader.value));
    let expected = Some((second.token(), b"third".to_vec()));
    ensure!(seen == expected, "{seen:?} leads, and not {expected:?}");
    soon("resign", second.resign()).await??;
    soon("resign", promised("the next leader", next).await???.resign()).await??;
    nothing_left(h).await
}

async fn the_next_in_line_leads(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("next"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let first = soon("campaign", here.campaign("first")).await??;
    let second = tokio::spawn(there.campaign("second"));
    wait_for_queue(&*a, &name, 2).await?;
    let mut observer = soon("observe", here.observe()).await??;
    reports(&mut observer, Some("first")).await?;
    let token = first.token();
    soon("resign", first.resign()).await??;
    let second = promised("the next leader", second).await???;
    ensure!(second.token() > token, "the next leader's token does not rise");
    let now = next_leader(&mut observer).await?;
    let seen = now.as_ref().map(|leader| (leader.token, leader.value.as_slice()));
    ensure!(seen == Some((second.token(), b"second".as_slice())), "observed {now:?}");
    soon("resign", second.resign()).await??;
    nothing_left(h).await
}

async fn a_crashed_leader_is_replaced(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("crash"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let dead = soon("campaign", here.campaign("dead")).await??;
    let heir = tokio::spawn(there.campaign("heir"));
    wait_for_queue(&*b, &name, 2).await?;
    a.crash().await?;
    let heir = within(expiry_limit(h, &*b), "the heir of a dead leader", heir).await???;
    let seen = soon("leader", there.leader()).await??;
    ensure!(seen.is_some_and(|leader| leader.value == b"heir"), "the heir is not seen to lead");
    soon("resign", heir.resign()).await??;
    drop(dead);
    Ok(())
}

/// Cut off while one leader follows another, and back: it reports the present leader, and no older
/// one.
async fn an_observer_that_was_cut_off(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("cut"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let mut observer = soon("observe", there.observe()).await??;
    reports(&mut observer, None).await?;
    let first = soon("campaign", here.campaign("first")).await??;
    reports(&mut observer, Some("first")).await?;
    b.cut().await?;
    soon("resign", first.resign()).await??;
    soon("campaign", here.campaign("between")).await??.resign().await?;
    let last = soon("campaign", here.campaign("last")).await??;
    // The scenario: out of reach for longer than the TTL.
    tokio::time::sleep(h.ttl() + h.ttl() / 2).await;
    b.heal().await?;
    let mut newest = None;
    loop {
        let now = next(&mut observer).await?;
        let token = now.as_ref().map(|leader| leader.token);
        ensure!(token.is_none() || token >= newest, "observed an older leader: {now:?}");
        newest = newest.max(token);
        if newest == Some(last.token()) {
            break;
        }
    }
    soon("resign", last.resign()).await??;
    reports(&mut observer, None).await?;
    Ok(())
}

/// They exclude each other, and a holder of the lock without a value leads with an empty one.
async fn a_lock_and_an_election_of_one_name(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("both"), h.client().await?, h.client().await?);
    let leading = soon("campaign", election(h, &*a, &name)?.campaign("x")).await??;
    let busy = soon("try", lock(h, &*b, &name)?.try_acquire()).await??;
    ensure!(busy.is_none(), "the lock was free although somebody leads");
    soon("resign", leading.resign()).await??;
    let guard = acquire(h, &*b, &name).await?;
    let leader = soon("leader", election(h, &*a, &name)?.leader()).await??;
    let seen = leader.map(|leader| (leader.token, leader.value.len()));
    ensure!(seen == Some((guard.token(), 0)), "the holder of the lock is seen to lead as {seen:?}");
    let busy = soon("try", election(h, &*a, &name)?.try_campaign("x")).await??;
    ensure!(busy.is_none(), "somebody leads although the lock is held");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}
