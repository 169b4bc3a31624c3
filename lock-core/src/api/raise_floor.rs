//! Raising the floor that all later tokens of a store are above.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use uuid::Uuid;

use crate::{
    DistributedLock, Effect, Error, FencingToken, LockName, Result, TokenFloor,
    driver::duration::shown,
    keep::{
        backoff::Backoff,
        errors::{invalid, unavailable},
    },
};

/// How long a raise looks for attempts below the floor after its first pass.
const LIMIT: Duration = Duration::from_secs(30);
/// The pause between two passes, from the second on.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
/// How many names an error lists.
const NAMED: usize = 5;

/// Raises the floor, then ends older attempts below it, until there are none. Called again after a
/// failure, it goes on.
pub(crate) async fn raise(driver: &dyn DistributedLock, above: FencingToken) -> Result<TokenFloor> {
    let (store, greatest) = (driver.guarantees().store, driver.guarantees().greatest_floor());
    if above > greatest {
        let allowed =
            format!("{store} takes 0 to {greatest}: its tokens need room above the floor");
        return Err(invalid("token floor", above, allowed));
    }
    let floor = driver.raise_token_floor(above).await?;
    end_below(driver, floor).await?;
    Ok(floor)
}

/// An attempt below a floor, and the name where it has a place.
type Below = (LockName, Uuid);

/// Looks again after each pass: a ticket may have moved a lock to another attempt since the list.
async fn end_below(driver: &dyn DistributedLock, floor: TokenFloor) -> Result<()> {
    let (clock, mut refused) = (driver.clock(), HashMap::new());
    let (mut until, mut pause) = (None, BACKOFF);
    loop {
        let mut left = driver.below_token_floor(floor).await?;
        let found: HashSet<_> = left.iter().collect();
        refused.retain(|below, _| found.contains(below));
        left.retain(|below| !refused.contains_key(below));
        if left.is_empty() {
            return refused_to_end(refused);
        }
        match until {
            None => until = Some(clock.now() + LIMIT),
            Some(until) if clock.now() >= until => return Err(still_there(driver, left)),
            Some(_) => {
                clock.sleep_until(clock.now() + pause.take()).await;
            }
        }
        // The last in line first: ending one attempt must not grant the lock to another one below.
        for below in left.into_iter().rev() {
            match driver.revoke(&below.0, below.1).await {
                Ok(_) => {}
                // It may be gone, by a request without an answer: the next list tells.
                Err(Error::Unavailable { effect: Effect::Unknown, .. }) => break,
                // The store may allow others.
                Err(error @ (Error::Denied { .. } | Error::Rejected { .. })) => {
                    refused.insert(below, error);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// One of the refusals, if there are any, with the names of all.
fn refused_to_end(refused: HashMap<Below, Error>) -> Result<()> {
    let left = still_below(refused.keys().map(|(name, _)| name));
    refused.into_values().next().map_or(Ok(()), |error| Err(error.hinted(left)))
}

fn still_there(driver: &dyn DistributedLock, left: Vec<Below>) -> Error {
    let (store, op) = (driver.guarantees().store, "raise the token floor");
    let why = format!("{} after each was ended again and again", shown(LIMIT));
    let left = still_below(left.iter().map(|(name, _)| name));
    unavailable(store, op, Effect::Unknown, why).hinted(left)
}

/// Names that still have attempts below the raised floor: the first ones, each once, and how many
/// more there are.
fn still_below<'a>(names: impl Iterator<Item = &'a LockName>) -> String {
    let names: BTreeSet<_> = names.map(LockName::as_str).collect();
    let first = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the floor is raised, and these have still a place below it: {first}{more}")
}
