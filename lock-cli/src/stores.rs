//! `distlock stores`: what there is, and what it promises.

use std::time::Duration;

use distlock::{Fairness, Fencing, Guarantees, STORES, Store, TokenFloor, Wake};
use lock_core::duration::shown;
use serde::Serialize;

use crate::{choice::Choice, exit::Failure, opt::Stores, print};

/// A store as it can be named.
#[derive(Serialize)]
struct Known {
    store: &'static str,
    url: &'static str,
    compiled_in: bool,
    promises: &'static str,
}

impl From<&Store> for Known {
    fn from(store: &Store) -> Self {
        let Store { scheme, url, compiled_in, promises, .. } = *store;
        Self { store: scheme, url, compiled_in, promises }
    }
}

/// What a store promises as it is deployed.
#[derive(Serialize)]
struct Promises {
    store: &'static str,
    kinds: Vec<String>,
    survives_restart: bool,
    survives_failover: bool,
    /// How a holder may hear of its loss only after the next grant.
    overlaps: Vec<String>,
    first_come_first_served: bool,
    waiters_are_told: bool,
    /// `strict`, `best effort` or `none`.
    tokens: &'static str,
    /// No token is ever greater.
    greatest_token: u64,
    /// What all tokens are above since the token floor was raised; 0 if it never was, nothing if the store
    /// does not tell.
    token_floor: Option<u64>,
    /// Whether a lock can be left to another process.
    detach: bool,
    ttl_min_ms: u128,
    ttl_max_ms: u128,
    ttl_default_ms: u128,
}

pub(crate) async fn stores(opt: &Stores, store: &Choice) -> Result<(), Failure> {
    if store.is_argument() {
        return one(opt, store).await;
    }
    if opt.json {
        let known: Vec<_> = STORES.iter().map(Known::from).collect();
        return Ok(print::json(&known)?);
    }
    let rows = STORES.iter().map(|store| {
        let there = if store.compiled_in { "yes" } else { "no" };
        [store.scheme, there, store.url, store.promises].map(str::to_owned).to_vec()
    });
    Ok(print::table(&["store", "built in", "url", "promises"], rows)?)
}

async fn one(opt: &Stores, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    // A login may see no more than its locks.
    let floor = locks.token_floor().await.ok();
    let promises = Promises::new(locks.guarantees(), floor);
    match opt.json {
        true => print::json(&promises)?,
        false => print::table(&["promise", ""], promises.rows())?,
    }
    Ok(locks.close().await?)
}

impl Promises {
    fn new(guarantees: &Guarantees, floor: Option<TokenFloor>) -> Self {
        Self {
            store: guarantees.store,
            kinds: guarantees.kinds.iter().map(ToString::to_string).collect(),
            survives_restart: guarantees.survives.restart,
            survives_failover: guarantees.survives.failover,
            overlaps: guarantees.overlaps.iter().map(ToString::to_string).collect(),
            first_come_first_served: guarantees.fairness == Fairness::Fifo,
            waiters_are_told: guarantees.wake == Wake::Push,
            tokens: match guarantees.fencing {
                Fencing::Strict(_) => "strict",
                Fencing::BestEffort(_) => "best effort",
                _ => "none",
            },
            greatest_token: guarantees.greatest_token.value(),
            token_floor: floor.map(|floor| floor.above.value()),
            detach: guarantees.detach,
            ttl_min_ms: guarantees.ttl.start().as_millis(),
            ttl_max_ms: guarantees.ttl.end().as_millis(),
            ttl_default_ms: guarantees.default_ttl.as_millis(),
        }
    }
}

fn span(millis: u128) -> String {
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    shown(Duration::from_millis(millis)).to_string()
}

impl Promises {
    fn rows(&self) -> Vec<Vec<String>> {
        let yes = |so| if so { "yes" } else { "no" }.to_owned();
        [
            ("store", self.store.to_owned()),
            ("kinds", self.kinds.join(", ")),
            ("a held lock survives a restart of the server", yes(self.survives_restart)),
            (".. and the loss of a node", yes(self.survives_failover)),
            ("a holder may be told after the next grant if", self.overlaps.join("; ")),
            ("first come, first served", yes(self.first_come_first_served)),
            ("waiters are told, and do not poll", yes(self.waiters_are_told)),
            ("fencing tokens", self.tokens.to_owned()),
            (
                ".. are above",
                self.token_floor.map_or("not told".to_owned(), |above| above.to_string()),
            ),
            (".. and at most", self.greatest_token.to_string()),
            ("a lock can be left to another process", yes(self.detach)),
            (
                "TTL",
                format!(
                    "{} to {}, default {}",
                    span(self.ttl_min_ms),
                    span(self.ttl_max_ms),
                    span(self.ttl_default_ms)
                ),
            ),
        ]
        .map(|(label, value)| vec![label.to_owned(), value])
        .to_vec()
    }
}
