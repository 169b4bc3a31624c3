//! C37: a session can be orphaned; its lock lives on, and another process can take it up.

use std::time::Duration;

use crate::{Actor, Claim, Contestant, Failure, Figure, Nature, Outcome, Side, Stage};

pub(super) const CLAIM: Claim = Claim {
    number: 37,
    title: "An orphaned session's lock lives on",
    claimed: "A session can be orphaned: its lock lives on for the TTL, and another process can take \
              it up.",
    done: "A's process ends while it holds the lock, and B tries it at once and then waits. Then \
           another process takes the lock up and keeps it for two TTLs: by a ticket that A has left \
           where distlock can do that, and on etcd by the number of the lease, as WithLease does. In \
           the control A closes its session, and nobody takes anything up.",
    measured: "Whether B is refused right after the end, when it gets in, and whether the lock is \
               there after two TTLs.",
    threshold: "Holds if B is refused at once and gets in later, and if each lock that was taken up \
                outlives its TTL.",
};

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let takes_up = !stage.is_swapped();
    let (orphaned, ticket, lease) = tokio::join!(
        play(stage, stage.is_swapped()),
        by_ticket(stage, takes_up),
        by_lease(stage, takes_up),
    );
    let ((side, lives_on, freed), taken_up) = (orphaned?, [ticket?, lease?]);
    let taken_up: Vec<_> = taken_up.into_iter().flatten().collect();
    let seen = lives_on && taken_up.iter().all(|side| side.well);
    let sentence = Side::summaries([&side].into_iter().chain(&taken_up));
    Ok(Outcome::holds_if(seen, sentence)
        .side(side)
        .sides(taken_up)
        .figure(Figure::time("TTL", stage.short_ttl()))
        .figure(Figure::time("from the end to the next grant", freed)))
}

/// Also returns whether the lock lived on, and the time until it was free.
async fn play(stage: &Stage, closes: bool) -> Result<(Side, bool, Duration), Failure> {
    let (lock, name, ttl) = (stage.distlock().await?, stage.name("orphaned"), stage.short_ttl());
    let lock: &dyn Contestant = &lock;
    let (trace, home) = (stage.trace(&lock.label()), Actor::start("A")?);
    let second = lock.client().await?;
    let (first, hold, holding) = trace.client("A").takes_in(&home, lock, &name, ttl).await?;
    let from = trace.now();
    let end = if closes { "A closes its session" } else { "A's process ends" };
    match closes {
        true => {
            first.close().await?;
            drop(hold);
        }
        false => home.kill((first, hold)),
    }
    holding.ended(end);
    let trying = trace.client("B tries").asks(&name);
    let tried = second.acquire(&name, ttl, Duration::ZERO).await?;
    let lives_on = tried.is_none();
    let waiting = trace.client("B waits");
    let (got, entry) = match tried {
        Some(hold) => (hold, trying),
        None => {
            trying.ended("it is held");
            let entry = waiting.asks(&name);
            let got = second.acquire(&name, ttl, PATIENCE).await?;
            (got.ok_or("B waits in vain")?, entry)
        }
    };
    let freed = Duration::from_nanos(trace.now().saturating_sub(from));
    entry.granted(got.token());
    entry.gives_back(got).await?;
    let happened = match lives_on {
        true => format!("{end}: the lock stays held, and B gets in {} ms later", freed.as_millis()),
        false => format!("{end}: the lock is free at once"),
    };
    let side = Side::new(lock.label(), Nature::Distlock, true, happened);
    let side = side.played(trace.history())?;
    Ok((side, lives_on, freed))
}

/// Plays a lock of distlock that its process left before its end. Another process takes it up, or
/// none does.
async fn by_ticket(stage: &Stage, is_taken_up: bool) -> Result<Option<Side>, Failure> {
    let next = stage.connect().await?;
    if !next.guarantees().detach {
        return Ok(None);
    }
    let (name, ttl, home) = (stage.name("left"), stage.short_ttl(), Actor::start("A")?);
    let (url, key, trace) = (stage.shared().await?.url(), name.clone(), stage.trace("ticket"));
    let leaving = trace.client("A").asks(&name);
    let leave = async move {
        let locks = distlock::connect(url).await?;
        let guard = locks.lock(&key)?.ttl(ttl).acquire().await?;
        let token = guard.token();
        let ticket = guard.detach().await?.to_string();
        Ok::<_, Failure>((locks, token, ticket))
    };
    let (locks, token, ticket) = home.run(leave).await??;
    leaving.granted(Some(token.value()));
    leaving.ended("left to the holder of the ticket");
    home.kill(locks);
    let taken_up = match is_taken_up {
        true => Some(next.adopt(&ticket.parse()?).await?),
        false => None,
    };
    let same = taken_up.as_ref().is_some_and(|guard| guard.token() == token);
    let waiting = trace.client("B").asks(&name);
    let got = stage.distlock().await?.client().await?.acquire(&name, ttl, ttl * 2).await?;
    let is_held = got.is_none();
    waiting.passes(got).await?;
    if let Some(guard) = taken_up {
        guard.release().await?;
    }
    let well = is_held && same;
    let happened = match well {
        true => "another process takes it up with the same token, and keeps it for two TTLs",
        false => "nobody takes it up: the next client gets in after the TTL",
    };
    let side = Side::new("distlock, a ticket", Nature::Distlock, well, happened);
    Ok(Some(side.played(trace.history())?))
}

/// Plays a lease of etcd after the end of its process. Another process takes it up, or none does.
#[cfg(feature = "etcd")]
async fn by_lease(stage: &Stage, is_taken_up: bool) -> Result<Option<Side>, Failure> {
    use crate::go_mutex::{GoMutex, connect, keep_alive};

    if stage.store != crate::Store::Etcd {
        return Ok(None);
    }
    let (url, ttl, name) = (stage.shared().await?.url(), stage.short_ttl(), stage.name("taken-up"));
    let go = GoMutex::new(&url);
    let session = go.session(ttl).await?;
    let (lease, revision) = (session.lease, session.enqueue(&name).await?);
    let reader = go.session(ttl * 4).await?;
    // Its process ends: the lease is not renewed any more.
    drop(session);
    let alive = std::sync::Arc::default();
    let keeper = match is_taken_up {
        true => Some(keep_alive(connect(&url).await?, lease, ttl / 3, alive).await?),
        false => None,
    };
    let successor = go.client().await?;
    let held = successor.acquire(&name, ttl, ttl * 2).await?.is_none();
    let is_there = reader.has(&name, lease, revision).await?;
    keeper.iter().for_each(tokio::task::AbortHandle::abort);
    reader.close().await?;
    successor.close().await?;
    let happened = match (held, is_there) {
        (true, true) => {
            "another process keeps the lease alive: after two TTLs its key is there, \
                         and nobody else got in"
        }
        _ => {
            "nobody keeps the lease alive: after two TTLs its key is gone, and the next client got in"
        }
    };
    let label = "Go's session, by the number of its lease";
    Ok(Some(Side::new(label, Nature::Imitation, held && is_there, happened)))
}

#[cfg(not(feature = "etcd"))]
async fn by_lease(_: &Stage, _: bool) -> Result<Option<Side>, Failure> {
    Ok(None)
}
