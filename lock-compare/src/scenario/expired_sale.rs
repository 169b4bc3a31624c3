//! Two clients sell the last item under a lock that expires while the first one stands still.

use std::{sync::Arc, time::Duration};

use lock_history::History;

use crate::{Actor, Contestant, Failure, Keys, Trace};

const PATIENCE: Duration = Duration::from_secs(30);

/// The way of a sale.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sale {
    /// `GET`, and if something is left, `DECR`.
    ReadThenDecr,
    /// The same, if the client's own calculation still says that it holds the lock.
    CheckedDecr,
    /// One atomic step that decrements unless nothing is left.
    Atomic,
}

/// The result.
pub(crate) struct ExpiredSale {
    /// The stock in the store. Less than 0 is oversold.
    pub left: i64,
    /// The events, line by line.
    pub story: Vec<String>,
    /// The trace.
    pub history: History,
}

/// A gets the lock, sees one item, and stands still until B has the lock and sells it. Then A
/// sells.
pub(crate) async fn expired_sale(
    lock: &dyn Contestant,
    shop: Arc<dyn Keys>,
    sale: Sale,
    trace: &Trace,
    name: &str,
    ttl: Duration,
) -> Result<ExpiredSale, Failure> {
    let stock = format!("{name}-stock");
    shop.set(&stock, "1").await?;
    let seen = async || -> Result<i64, Failure> {
        Ok(shop.get(&stock).await?.ok_or("there is no stock")?.parse()?)
    };
    let sell = async |seen: i64, holds: bool| -> Result<bool, Failure> {
        Ok(match sale {
            Sale::Atomic => shop.compare_and_decr(&stock).await?.is_some(),
            Sale::CheckedDecr if !holds => false,
            _ => seen > 0 && shop.decr(&stock).await? > i64::MIN,
        })
    };
    let (home, first) = (Actor::start("A")?, trace.client("A").asks(name));
    let client = lock.client_in(&home).await?;
    let hold = client.acquire_in(&home, name, ttl, PATIENCE).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    first.granted(hold.token());
    let first_saw = seen().await?;

    let breakage = trace.fault("pause", "A");
    let pause = home.pause().await?;
    let (other, second) = (lock.client().await?, trace.client("B").asks(name));
    let next = other.acquire(name, ttl, PATIENCE).await?.ok_or("B waits in vain")?;
    second.granted(next.token());
    let sold = sell(seen().await?, next.believes()).await?;
    let mut story = vec![format!("A sees {first_saw} item and stands still; B gets the lock")];
    story.push(format!("B sells the item: {sold}"));
    pause.end();
    breakage.healed();
    let holds = first.believes(|| hold.believes());
    let late = sell(first_saw, holds).await?;
    story.push(format!("A comes back, believes that it holds the lock: {holds}, sells: {late}"));
    second.leaves(next).await?;
    // A client with an expired session cannot release any more.
    let _ = home.run(async move { hold.release().await }).await?;
    first.ended("came back late");
    drop(client);
    let left = seen().await?;
    story.push(format!("the store says that {left} are left"));
    Ok(ExpiredSale { left, story, history: trace.history() })
}
