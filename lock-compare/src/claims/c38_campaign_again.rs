//! C38: the leader campaigns again.

use std::time::Duration;

use distlock::Owner;

use crate::{Claim, Failure, Nature, Outcome, Side, Stage};

pub(super) const CLAIM: Claim = Claim {
    number: 38,
    title: "Campaigning again is proclaiming",
    claimed: "Campaign by the present leader acts as Proclaim.",
    done: "The leader campaigns again with another value: in etcd's own election service with the \
           same lease, in distlock under the same owner. In the control the second campaign of \
           etcd has another lease, and distlock's candidates are nobody in particular.",
    measured: "What the leader says to everybody after the second call.",
    threshold: "Holds if it is the second value.",
};

const TTL: Duration = Duration::from_secs(10);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (changed, ours) = ours(stage).await?;
    #[cfg(feature = "etcd")]
    if stage.store == crate::Store::Etcd {
        let (changed, side) = theirs(stage).await?;
        let sentence = side.summary();
        return Ok(Outcome::holds_if(changed, sentence).side(side).side(ours));
    }
    let sentence = format!("distlock: {}", ours.happened);
    Ok(Outcome::holds_if(changed, sentence).side(ours))
}

/// Plays it with etcd's own election service. Also returns whether the leader's value changed.
#[cfg(feature = "etcd")]
async fn theirs(stage: &Stage) -> Result<(bool, Side), Failure> {
    let ground = stage.own().await?;
    let addr = ground.server().ok_or("a private store has a server")?.addr().to_string();
    let one_lease = !stage.is_swapped();
    let name = stage.name("twice");
    let [first, second] = crate::bare::campaigns(&addr, &name, one_lease).await?;
    let changed = second == "second";
    let lease = if one_lease { "the same lease" } else { "another lease" };
    let label = format!("etcd's own election service, {lease}");
    let happened = match changed {
        true => "the second campaign returns at once, and its value is what everybody sees",
        false => "the second campaign waits, and the first value stays",
    };
    let side = Side::new(label, Nature::Program, changed == one_lease, happened)
        .evidence(format!("what the leader says, before and after: {first}, {second}"));
    Ok((changed, side))
}

/// Plays it with distlock. Also returns whether the leader's value changed.
async fn ours(stage: &Stage) -> Result<(bool, Side), Failure> {
    let locks = stage.connect().await?;
    let election = locks.election(stage.name("election"))?.ttl(TTL);
    let election = stage.pick(election.clone().owner(&Owner::new()), election);
    let leadership = election.campaign("first").await?;
    let token = leadership.token().value();
    let again = election.try_campaign("second").await?;
    let leader = election.leader().await?.ok_or("nobody leads")?;
    let value = String::from_utf8_lossy(&leader.value).into_owned();
    let changed = value == "second";
    let happened = match changed {
        true => "a second campaign of the same owner changes the value, under the same token",
        false => "a second campaign is another candidate's, who does not get in; the value stays",
    };
    let side = Side::new("distlock", Nature::Distlock, true, happened)
        .evidence(format!("the leader says {value:?}"))
        .evidence(format!("its token, before and after: {token}, {}", leader.token.value()));
    if let Some(again) = again {
        again.resign().await?;
    }
    leadership.resign().await?;
    Ok((changed, side))
}
