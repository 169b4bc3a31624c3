//! All contenders of a store.

use std::sync::Arc;

use super::{
    Contender,
    beside::{beside, missing},
    distlock::{Distlock, NAME},
};
use crate::Failure;

/// distlock first, then what runs beside it, with a sentence for each that is missing.
pub(crate) async fn of(scheme: &str, url: &str) -> (Vec<Arc<dyn Contender>>, Vec<String>) {
    let mut all: Vec<Arc<dyn Contender>> = vec![distlock()];
    all.extend(beside(scheme, url).await.into_iter().map(Arc::<dyn Contender>::from));
    (all, missing(scheme, url))
}

pub(crate) fn distlock() -> Arc<dyn Contender> {
    Arc::new(Distlock)
}

/// The one that a process of a fleet was told to be.
pub(crate) async fn named(
    scheme: &str,
    url: &str,
    name: &str,
) -> Result<Arc<dyn Contender>, Failure> {
    if name == NAME {
        return Ok(distlock());
    }
    let mut beside = beside(scheme, url).await.into_iter();
    let found = beside.find(|contender| contender.name() == name);
    found
        .map(Arc::<dyn Contender>::from)
        .ok_or_else(|| format!("{scheme} has no contender {name:?}").into())
}
