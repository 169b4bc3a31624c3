//! All contenders of a store: distlock, two floors, and the usual way.

use std::sync::Arc;

use super::{
    Contender,
    distlock::{SIMPLE, USUAL},
    floor, usual,
    way::simple,
};
use crate::Failure;

/// distlock first (on Redis also its mode without an order), then what runs beside it. With a
/// sentence for each that is left out: what is missing, and the remedy.
pub(crate) fn of(scheme: &str, url: &str) -> (Vec<Arc<dyn Contender>>, Vec<String>) {
    let (mut all, mut missing) = (vec![distlock()], Vec::new());
    let beside = match simple(url) {
        Ok(url) => {
            if scheme == "redis" && url.options().text("mode").is_none() {
                all.push(Arc::new(SIMPLE));
            }
            vec![Ok(floor::of(scheme)), usual::of(scheme)]
        }
        Err(why) => vec![Err(why)],
    };
    for found in beside {
        match found {
            Ok(ways) => all.extend(ways.into_iter().map(|way| Arc::new(way) as Arc<dyn Contender>)),
            Err(why) => missing.push(format!("{scheme}: {why}")),
        }
    }
    (all, missing)
}

pub(crate) fn distlock() -> Arc<dyn Contender> {
    Arc::new(USUAL)
}

/// The one that a process of a fleet was told to be.
pub(crate) fn named(scheme: &str, url: &str, name: &str) -> Result<Arc<dyn Contender>, Failure> {
    if name == USUAL.name {
        return Ok(distlock());
    }
    let found = of(scheme, url).0.into_iter().find(|contender| contender.name() == name);
    found.ok_or_else(|| format!("{scheme} has no contender {name:?}").into())
}
