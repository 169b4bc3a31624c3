//! Raising the number that all later tokens of a store are above.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    time::Duration,
};

use uuid::Uuid;

use crate::{
    BoxError, DistributedLock, Effect, Error, FencingToken, LockName, Result, TokenFloor,
    driver::duration::shown, keep::backoff::Backoff,
};

/// For how long after its first pass a raise looks for who is still below the floor.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two passes, from the second on.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
/// How many names an error has.
const NAMED: usize = 5;

/// Raises the floor, then ends what was there before and would be below it, until nobody is. Done again
/// after a failure, it goes on.
pub(crate) async fn raise(driver: &dyn DistributedLock, above: FencingToken) -> Result<TokenFloor> {
    let (store, greatest) = (driver.guarantees().store, driver.guarantees().greatest_floor());
    if above > greatest {
        return Err(Error::InvalidOption {
            option: "token floor".to_owned(),
            value: above.to_string(),
            allowed: format!("{store} takes 0 to {greatest}: its tokens need room above the floor"),
        });
    }
    let floor = driver.raise_token_floor(above).await?;
    end_below(driver, floor).await?;
    Ok(floor)
}

/// Who is below a floor: a name, and an attempt that has a place there.
type Below = (LockName, Uuid);

/// Looks again after each pass: a lock may have gone to another attempt since it was listed, by a ticket.
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
        // The last in line first: nobody below the floor is granted because somebody before was ended.
        for below in left.into_iter().rev() {
            match driver.revoke(&below.0, below.1).await {
                Ok(_) => {}
                // Others may be allowed.
                Err(error @ (Error::Denied { .. } | Error::Rejected { .. })) => {
                    refused.insert(below, error);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// # Errors
///
/// One of these, if there are any, with the names of all.
fn refused_to_end(refused: HashMap<Below, Error>) -> Result<()> {
    let names = listed(refused.keys().map(|(name, _)| name));
    let said = |source| -> BoxError { Unended { names, source }.into() };
    match refused.into_values().next() {
        None => Ok(()),
        Some(Error::Denied { store, op, source }) => {
            Err(Error::Denied { store, op, source: said(source) })
        }
        Some(Error::Rejected { store, op, effect, source }) => {
            Err(Error::Rejected { store, op, effect, source: said(source) })
        }
        Some(error) => Err(error),
    }
}

fn still_there(driver: &dyn DistributedLock, left: Vec<Below>) -> Error {
    let names = listed(left.iter().map(|(name, _)| name));
    let source = format!("{} after each was ended again and again", shown(LIMIT)).into();
    Error::Unavailable {
        store: driver.guarantees().store,
        op: "raise the token floor",
        effect: Effect::Unknown,
        source: Unended { names, source }.into(),
    }
}

/// The first names, each once, and how many there are.
fn listed<'a>(names: impl Iterator<Item = &'a LockName>) -> String {
    let names: BTreeSet<_> = names.map(LockName::as_str).collect();
    let first: Vec<_> = names.iter().take(NAMED).copied().collect();
    match names.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Who is below a floor that is raised.
#[derive(Debug)]
struct Unended {
    names: String,
    source: BoxError,
}

impl fmt::Display for Unended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, source } = self;
        write!(f, "the floor is raised, and these have still a place below it: {names}: {source}")
    }
}

impl std::error::Error for Unended {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
