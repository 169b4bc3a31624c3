//! What observers of an election are told: any value, of nobody but the leader, once, in order, and
//! until their client ends. Go's `Observe` never reports that nobody leads.

use super::{Client, Done, Failure, Harness, ensure, keeps, property, scene::*};
use crate::{
    Election, Error, FencingToken, Leader, Leadership, LockKind, LockName, LossReason, Observer,
    api::lock::LONGEST_VALUE,
};

property!(
    any_bytes_are_a_value,
    who_shares_does_not_lead,
    a_deposed_leader_says_nothing,
    lost_answers_are_told_once,
    one_that_does_not_look_delays_nobody,
    they_end_with_their_client,
);

fn election(h: &dyn Harness, client: &dyn Client, name: &LockName) -> Result<Election, Failure> {
    needs_kind(client, LockKind::Election)?;
    Ok(client.locks().election(name)?.ttl(long(h, client)))
}

/// Waits for the next change; fails if it is not this leader with this value, or nobody.
async fn reports(
    observer: &mut Observer,
    leads: Option<(&Leadership, &[u8])>,
) -> Result<Option<Leader>, Failure> {
    let now = next(observer).await?;
    let seen = now.as_ref().map(|leader| (leader.token, &leader.value[..]));
    let expected = leads.map(|(leading, value)| (leading.token(), value));
    let short = |leads: Option<(FencingToken, &[u8])>| match leads {
        Some((token, value)) => format!("{:.40} by {token}", String::from_utf8_lossy(value)),
        None => "nobody".to_owned(),
    };
    ensure!(seen == expected, "observed {:?} instead of {:?}", short(seen), short(expected));
    Ok(now)
}

/// An observer of a name that nobody leads.
async fn observe(election: &Election) -> Result<Observer, Failure> {
    let mut observer = soon("observe", election.observe()).await??;
    reports(&mut observer, None).await?;
    Ok(observer)
}

/// Those who ask see what those who observe are told: who it is, by which token, and what it says.
async fn any_bytes_are_a_value(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    // With the proclaimed end, the longest that is allowed.
    let long = vec![0xff; LONGEST_VALUE - 2];
    let values: [&[u8]; 5] = [b"", b"a b\n\r\0", b" \xff gone", b"7 {}\n", &long];
    for (odd, value) in ["a b", "{x}", "a}b", "\u{f1}", "x"].into_iter().zip(values) {
        let name = LockName::new(format!("{odd}-{}", fresh("bytes")))?;
        let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
        let mut observer = observe(&there).await?;
        let mut leading = soon("campaign", here.campaign(value)).await??;
        reports(&mut observer, Some((&leading, value))).await?;
        let other = [value, b"!\n"].concat();
        soon("proclaim", leading.proclaim(&other)).await??;
        let told = reports(&mut observer, Some((&leading, &other))).await?;
        is_shown(&here, &name, told, &*b).await?;
        let heir = tokio::spawn(there.campaign(value));
        wait_for_queue(&*a, &name, 2).await?;
        soon("resign", leading.resign()).await??;
        let heir = promised("the next leader", heir).await???;
        let told = next_leader(&mut observer).await?;
        ensure!(told.as_ref().is_some_and(|told| told.value == value), "an heir's value");
        is_shown(&there, &name, told, &*a).await?;
        soon("resign", heir.resign()).await??;
        reports(&mut observer, None).await?;
    }
    nothing_left(h).await
}

/// Who asks sees what an observer was told, and so does who inspects. A store may learn later when
/// it was granted, or tell only some of them.
async fn is_shown(
    election: &Election,
    name: &LockName,
    told: Option<Leader>,
    other: &dyn Client,
) -> Done {
    let seen = soon("leader", election.leader()).await??;
    let queue = queue(other, name).await?;
    let shown = queue.into_iter().next().ok_or("no leader is shown")?.holder.granted(None);
    let [seen, told] = [seen, told].map(|leader| {
        leader.map(|leader| (leader.token, leader.value, leader.holder.granted(None)))
    });
    ensure!(seen == told, "who asks and who observes see different leaders");
    let holder = told.map(|(.., holder)| holder);
    let same = shown.description.is_none() || holder.as_ref() == Some(&shown);
    ensure!(same, "observed {holder:?}, and inspected {shown:?}");
    Ok(())
}

/// A reader and holders of permits do not lead. A lock without a value does, until it is shared.
async fn who_shares_does_not_lead(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("shares"), h.client().await?, h.client().await?);
    for kind in [LockKind::Election, LockKind::Shared, LockKind::Permits] {
        needs_kind(&*a, kind)?;
    }
    let there = election(h, &*b, &name)?;
    let mut observer = observe(&there).await?;
    let reader = soon("acquire", a.locks().shared(&name)?.acquire()).await??;
    ensure!(soon("leader", there.leader()).await??.is_none(), "a reader is seen to lead");
    soon("release", reader.release()).await??;
    let permit = soon("acquire", a.locks().semaphore(&name, 2)?.acquire()).await??;
    ensure!(soon("leader", there.leader()).await??.is_none(), "a permit is seen to lead");
    soon("release", permit.release()).await??;
    let mut guard = soon("acquire", a.locks().lock(&name)?.acquire()).await??;
    let leader = next(&mut observer).await?;
    let seen = leader.map(|leader| (leader.token, leader.value));
    ensure!(seen == Some((guard.token(), Vec::new())), "{seen:?} and not {guard:?}");
    soon("downgrade", guard.downgrade()).await??;
    let leader = next(&mut observer).await?;
    ensure!(leader.is_none(), "a downgraded lock leads: {leader:?}");
    // Who asks is told at once. Some stores let observers know after seconds.
    ensure!(soon("upgrade", guard.try_upgrade()).await??, "a reader that is alone");
    let leader = soon("leader", there.leader()).await??.map(|leader| leader.token);
    ensure!(leader == Some(guard.token()), "{leader:?} and not {guard:?}");
    soon("release", guard.release()).await??;
    let leader = soon("leader", there.leader()).await??;
    ensure!(leader.is_none(), "{leader:?} after a release");
    nothing_left(h).await
}

/// It is revoked, with and without one that waits for it. Neither its value nor its proclamation
/// counts from then on.
async fn a_deposed_leader_says_nothing(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("deposed"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let mut observer = observe(&there).await?;
    for has_heir in [false, true] {
        let mut old = soon("campaign", here.campaign("old")).await??;
        reports(&mut observer, Some((&old, b"old"))).await?;
        let heir = has_heir.then(|| tokio::spawn(there.campaign("heir")));
        wait_for_queue(&*b, &name, 1 + usize::from(has_heir)).await?;
        revoke_first(&*b, &name).await?;
        let late = soon("proclaim", old.proclaim("late")).await?;
        let lost = matches!(late, Err(Error::Lost { reason: LossReason::EntryGone, .. }));
        ensure!(lost, "a proclamation of a deposed leader: {late:?}");
        let Some(heir) = heir else {
            reports(&mut observer, None).await?;
            ensure!(soon("leader", there.leader()).await??.is_none(), "a deposed leader leads");
            continue;
        };
        let heir = promised("the next leader", heir).await???;
        let now = next_leader(&mut observer).await?;
        let seen = now.map(|leader| (leader.token, leader.value));
        ensure!(seen == Some((heir.token(), b"heir".to_vec())), "observed {seen:?}");
        soon("resign", heir.resign()).await??;
        reports(&mut observer, None).await?;
    }
    nothing_left(h).await
}

/// Waits until an election has this value.
async fn says(election: &Election, value: &[u8]) -> Done {
    let says = || async {
        let leader = soon("leader", election.leader()).await??;
        Ok(leader.is_some_and(|leader| leader.value == value))
    };
    until(says).await
}

/// Of a campaign and of a proclamation: the leader says it again, and observers are told once.
async fn lost_answers_are_told_once(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    // A server may have to load its scripts first.
    let mut leading = soon("campaign", here.campaign("before")).await??;
    soon("proclaim", leading.proclaim("")).await??;
    soon("resign", leading.resign()).await??;
    let mut observer = observe(&there).await?;
    let asked = unanswered(&*a, here.campaign("1"), says(&there, b"1")).await?;
    a.lose_replies().await?;
    let mut leading = promised("the campaign whose answer was lost", asked).await???;
    reports(&mut observer, Some((&leading, b"1"))).await?;
    for round in ["2", "3"] {
        let work = async move { leading.proclaim(round).await.map(|()| leading) };
        let asked = unanswered(&*a, work, says(&there, round.as_bytes())).await?;
        a.lose_replies().await?;
        leading = promised("the proclamation whose answer was lost", asked).await???;
        reports(&mut observer, Some((&leading, round.as_bytes()))).await?;
    }
    soon("proclaim", leading.proclaim("4")).await??;
    reports(&mut observer, Some((&leading, b"4"))).await?;
    soon("resign", leading.resign()).await??;
    reports(&mut observer, None).await?;
    nothing_left(h).await
}

/// The leader goes on, and another observer is told of everything. The one that slept never gets an
/// older value after a newer one, and gets the last one.
async fn one_that_does_not_look_delays_nobody(h: &dyn Harness) -> Done {
    const VALUES: u32 = 100;
    // A store that is asked again and again lets each of them wait.
    const ONE_BY_ONE: u32 = 10;
    let (name, a, b) = (fresh("sleeps"), h.client().await?, h.client().await?);
    let (here, there) = (election(h, &*a, &name)?, election(h, &*b, &name)?);
    let (mut sleeps, mut hears) = (observe(&there).await?, observe(&there).await?);
    let mut leading = soon("campaign", here.campaign("0")).await??;
    reports(&mut hears, Some((&leading, b"0"))).await?;
    for n in 1..=VALUES {
        let value = n.to_string();
        soon("proclaim", leading.proclaim(&value)).await??;
        if n <= ONE_BY_ONE {
            reports(&mut hears, Some((&leading, value.as_bytes()))).await?;
        }
    }
    catches_up(&mut hears, VALUES).await?;
    catches_up(&mut sleeps, VALUES).await?;
    soon("resign", leading.resign()).await??;
    for observer in [&mut sleeps, &mut hears] {
        reports(observer, None).await?;
    }
    nothing_left(h).await
}

/// It is told of newer and newer values, up to the last one.
async fn catches_up(observer: &mut Observer, last: u32) -> Done {
    let mut newest = None;
    while newest != Some(last) {
        let leader = next(observer).await?.ok_or("nobody is seen to lead")?;
        let value = String::from_utf8(leader.value)?.parse()?;
        ensure!(newest.is_none_or(|newest| newest < value), "{value} after {newest:?}");
        newest = Some(value);
    }
    Ok(())
}

/// Also one that has not looked for a while. The leader is another client's, and stays.
async fn they_end_with_their_client(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("ends"), h.client().await?);
    let mut leading = soon("campaign", election(h, &*a, &name)?.campaign("0")).await??;
    for closes in [true, false] {
        let b = h.client().await?;
        let there = election(h, &*b, &name)?;
        let mut observers = Vec::new();
        for _ in 0..2 {
            observers.push(soon("observe", there.observe()).await??);
        }
        next(&mut observers[0]).await?;
        for n in 0..20 {
            soon("proclaim", leading.proclaim(n.to_string())).await??;
        }
        if closes {
            soon("close", b.locks().close()).await??;
            let again = soon("observe", there.observe()).await?;
            ensure!(matches!(again, Err(Error::Closed { .. })), "a closed client observes");
        }
        drop((there, b));
        for mut observer in observers {
            let end = async { while observer.next().await.is_some() {} };
            promised("the end of an observer without its client", end).await?;
        }
    }
    keeps!(leading.is_valid(), "an observer's end cost the leader its lead");
    soon("resign", leading.resign()).await??;
    nothing_left(h).await
}
