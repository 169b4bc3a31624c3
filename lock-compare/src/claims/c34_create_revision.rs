//! C34: whether a create revision belongs to one key.

use crate::{Claim, Failure, Nature, Outcome, Side, Stage, Store, bare::create_revisions};

pub(super) const CLAIM: Claim = Claim {
    number: 34,
    title: "One create revision per key",
    claimed: "The create revision is unique per key, so it orders the keys of a queue.",
    done: "Two keys are put by one transaction, and their create revisions are read; ZooKeeper is \
           asked for the transaction that made two nodes. In the control each key has a \
           transaction of its own.",
    measured: "Whether the two keys have the same create revision.",
    threshold: "Differs if they have.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    if !matches!(stage.store, Store::Etcd | Store::ZooKeeper) {
        return Ok(Outcome::cannot_be_asked("the store does not number what creates a key"));
    }
    let ground = stage.own().await?;
    let addr = ground.server().ok_or("a private store has a server")?.addr().to_string();
    let (one, two) = (stage.name("one"), stage.name("two"));
    let together = !stage.is_swapped();
    let [a, b] = create_revisions(stage.store, &addr, [&one, &two], together).await?;
    let how = if together { "one transaction" } else { "a transaction each" };
    let happened = match a == b {
        true => format!("both keys, put by {how}, have the create revision {a}"),
        false => format!("the keys, put by {how}, have the create revisions {a} and {b}"),
    };
    let bare = Side::new("two puts", Nature::AsPrinted, a != b, happened.clone());
    Ok(Outcome::holds_if(a != b, happened)
        .side(bare.evidence(format!("create revisions: {a} and {b}")))
        .side(ours(stage, &ground.url()).await?))
}

/// A lock of distlock puts one key per attempt, so its tokens rise from grant to grant.
async fn ours(stage: &Stage, url: &str) -> Result<Side, Failure> {
    let (locks, name) = (crate::connect::connect(url).await?, stage.name("lock"));
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let guard = locks.lock(&name)?.acquire().await?;
        tokens.push(guard.token().value());
        guard.release().await?;
    }
    let rise = tokens.windows(2).all(|pair| pair[0] < pair[1]);
    let happened = if rise { "the tokens of one lock rise" } else { "tokens do not rise" };
    let side = Side::new("distlock", Nature::Distlock, rise, happened);
    Ok(side.evidence(format!("the tokens of three grants of one lock: {tokens:?}")))
}
