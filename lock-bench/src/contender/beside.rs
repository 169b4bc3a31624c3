//! What runs beside distlock on a store: two floors, and the usual way.

use distlock::Store;

use super::{
    Contender, floor, usual,
    way::{Way, simple},
};
use crate::Failure;

/// Returns the floors of the store at this URL, and its usual way if it is installed.
pub(crate) async fn beside(scheme: &str, url: &str) -> Vec<Box<dyn Contender>> {
    let ways = found(scheme, url).into_iter().filter_map(Result::ok).flatten();
    ways.map(|way| Box::new(way) as Box<dyn Contender>).collect()
}

/// Returns a sentence for each contender that is left out: what is missing, and the remedy.
pub(crate) fn missing(scheme: &str, url: &str) -> Vec<String> {
    let left_out = found(scheme, url).into_iter().filter_map(Result::err);
    left_out.map(|why| format!("{scheme}: {why}")).collect()
}

fn found(scheme: &str, url: &str) -> Vec<Result<Vec<Way>, Failure>> {
    let store = Store::of_scheme(scheme).map_or(scheme, |store| store.scheme);
    match simple(url) {
        Ok(_) => vec![Ok(floor::of(store)), usual::of(store)],
        Err(why) => vec![Err(why)],
    }
}
