//! The number that all later tokens of a store are above.

use std::fmt;

use crate::{DistributedLock, Error, FencingToken, Result};

/// How far a store's fencing tokens have come.
///
/// Tokens of two stores have nothing to do with each other, and a store that was restored from a
/// backup counts from the past. Its floor is raised then, so that resources that have seen greater
/// tokens do not refuse its holders: see [`Locks::raise_token_floor`](crate::Locks::raise_token_floor).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TokenFloor {
    /// The greatest number that the floor was raised to; 0 if it never was. Tokens of all names that
    /// were handed out since are greater.
    pub above: FencingToken,
    /// No token that the store has handed out is greater, of whatever name.
    pub newest: FencingToken,
}

impl TokenFloor {
    /// What a store says of itself.
    pub const fn new(above: FencingToken, newest: FencingToken) -> Self {
        Self { above, newest }
    }
}

impl fmt::Display for TokenFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tokens are above {}, the newest is at most {}", self.above, self.newest)
    }
}

/// Raises the floor, then ends what was there before and would be below it. Done again after a
/// failure, it goes on.
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
    // The last in line first: nobody below the floor is granted because somebody before was ended.
    for (name, attempt) in driver.below_token_floor(floor).await?.into_iter().rev() {
        driver.revoke(&name, attempt).await?;
    }
    Ok(floor)
}
