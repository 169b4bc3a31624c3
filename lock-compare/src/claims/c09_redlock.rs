//! C9: Redlock.

use std::time::Duration;

use lock_lab::{IndependentRedis, Redis, Shift};

use crate::{
    Claim, Contestant, Distlock, Failure, Outcome, Stage, Store, Topic,
    redlock::Redlock,
    scenario::{FirstHolder, Meeting, Second},
};

pub(super) const CLAIM: Claim = Claim {
    number: 9,
    title: "Redlock and clocks",
    claimed: "Redlock on five independent primaries survives the loss of a minority, fails safe \
              without a majority, and is unsafe when a server's clock jumps.",
    done: "B asks for A's lock when two of five servers are dead, when three are, and when one of \
           the three that granted it to A has a clock that jumps an hour ahead while two others \
           come back. In the control no clock jumps.",
    measured: "Whether B gets the lock while A's validity lasts.",
    threshold: "Breaks if B gets in after the jump alone.",
};

const TTL: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_millis(300);
const JUMP: Duration = Duration::from_secs(3600);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    match stage.store {
        Store::Redis => play(stage).await,
        _ => Ok(Outcome::cannot_be_asked("Redlock is made of Redis servers")),
    }
}

async fn play(stage: &Stage) -> Result<Outcome, Failure> {
    let five = IndependentRedis::start(5).await?;
    let lock = Redlock::new(&five.urls())?;
    let jump = stage.pick(Some(JUMP), None);

    let jumped = two_majorities(stage, &five, &lock, jump).await?;
    let single = one_server(stage, &five, jump).await?;
    let mut minority = FirstHolder::take(stage, &lock, "two of five are dead", TTL).await?;
    let mut majority = FirstHolder::take(stage, &lock, "three of five are dead", TTL).await?;
    five[0].kill();
    five[1].kill();
    minority.breaks("kill", "two of five servers");
    majority.breaks("kill", "three of five servers");
    let minority = minority.meets(&lock, WAIT).await?;
    five[2].kill();
    let majority = majority.meets(&lock, WAIT).await?;

    let survives = minority.second == Second::Waits && minority.kept;
    let safe = matches!(majority.second, Second::Refused(_));
    let seen = jumped.both() && survives && safe;
    let what = if jump.is_some() { "a clock that jumps" } else { "clocks that stay" };
    let sentence = format!(
        "with {what}: {}; two of five dead: {}; three of five dead: {}",
        jumped.told(),
        minority.told(),
        majority.told(),
    );
    let jumped = jumped.side(&format!("Redlock, with {what}"))?;
    let timeline = jumped.plot("Two majorities", Topic::Failover);
    let sides = [
        jumped,
        minority.side("Redlock, two of five dead")?,
        majority.side("Redlock, three of five dead")?,
        single.side(&format!("distlock on one server, with {what}"))?,
    ];
    Ok(Outcome::breaks_if(seen, sentence).sides(sides).plots(timeline))
}

/// A gets the lock on servers 1, 2 and 3 while 4 and 5 are down. Then 4 and 5 come back, and 3 may
/// have a clock jump that ends A's key.
async fn two_majorities(
    stage: &Stage,
    five: &IndependentRedis,
    lock: &Redlock,
    jump: Option<Duration>,
) -> Result<Meeting, Failure> {
    for server in &five[3..] {
        server.kill();
    }
    let holder = FirstHolder::take(stage, lock, "clock", TTL).await?;
    for server in &five[3..] {
        server.restart().await?;
    }
    meets_after(&five[2], jump, holder, lock).await
}

/// distlock on one server. Its clock may jump as well.
async fn one_server(
    stage: &Stage,
    five: &IndependentRedis,
    jump: Option<Duration>,
) -> Result<Meeting, Failure> {
    let lock = Distlock::new(five[4].url());
    let holder = FirstHolder::take(stage, &lock, "one server", TTL).await?;
    meets_after(&five[4], jump, holder, &lock).await
}

async fn meets_after(
    server: &Redis,
    jump: Option<Duration>,
    mut holder: FirstHolder,
    lock: &dyn Contestant,
) -> Result<Meeting, Failure> {
    if let Some(jump) = jump {
        server.move_clocks(Shift::ahead(jump), Shift::NONE)?;
        holder.breaks("clock jump", "a server");
    }
    let met = holder.meets(lock, WAIT).await?;
    server.move_clocks(Shift::NONE, Shift::NONE)?;
    Ok(met)
}
