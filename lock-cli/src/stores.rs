//! `distlock stores`: the stores of this program, or the promises of one.

use std::time::Duration;

use distlock::{
    ClockJumps, Fairness, Fencing, FencingToken, FixedTerm, Guarantees, LockKind, LossSignal,
    Overlap, STORES, Store, Survives, TokenFloor, Wake,
};
use lock_core::duration::shown;
use serde::Serialize;

use crate::{choice::Choice, exit::Failure, opt::Stores, print, token_floor::Floor};

/// A store as it can be named.
#[derive(Serialize)]
struct Known {
    scheme: &'static str,
    url: &'static str,
    compiled_in: bool,
    promises: &'static str,
}

impl Known {
    /// A store, and its other deployments.
    fn of(store: &Store) -> impl Iterator<Item = Self> {
        let Store { scheme, url, compiled_in, promises, deployments, .. } = *store;
        let others = deployments.iter().map(|other| (other.scheme, other.url, other.promises));
        let all = [(scheme, url, promises)].into_iter().chain(others);
        all.map(move |(scheme, url, promises)| Self { scheme, url, compiled_in, promises })
    }
}

/// The promises of a deployed store: [`Guarantees`], under the same names.
#[derive(Serialize)]
struct Promises {
    store: &'static str,
    kinds: &'static [LockKind],
    survives: Survives,
    overlaps: Vec<Overlap>,
    clock_jumps: Option<ClockJumps>,
    fairness: Fairness,
    wake: Wake,
    /// `strict`, `best_effort` or `none`.
    fencing: &'static str,
    greatest_token: FencingToken,
    /// `None` if the store does not tell.
    token_floor: Option<Floor>,
    loss: LossSignal,
    fixed_term: FixedTerm,
    ttl_min_ms: u128,
    ttl_max_ms: u128,
    default_ttl_ms: u128,
    expiry_slack_ms: u128,
    names_at_once: usize,
    detach: bool,
    marks: Option<&'static str>,
    no_other_kinds: Option<&'static str>,
    cautions: Vec<String>,
}

pub(crate) async fn stores(opt: &Stores, store: &Choice) -> Result<(), Failure> {
    if store.is_argument() {
        return one(opt, store).await;
    }
    let known = STORES.iter().flat_map(Known::of);
    if opt.json {
        return Ok(print::json(&known.collect::<Vec<_>>())?);
    }
    let rows = known.map(|store| {
        let there = if store.compiled_in { "yes" } else { "no" };
        [store.scheme, there, store.url, store.promises].map(str::to_owned).to_vec()
    });
    Ok(print::table(&["store", "built in", "url", "promises"], rows)?)
}

async fn one(opt: &Stores, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    // A login may have rights to its locks alone.
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
            kinds: guarantees.kinds,
            survives: guarantees.survives,
            overlaps: guarantees.overlaps.clone(),
            clock_jumps: guarantees.clock_jumps,
            fairness: guarantees.fairness,
            wake: guarantees.wake,
            fencing: match guarantees.fencing {
                Fencing::Strict(_) => "strict",
                Fencing::BestEffort(_) => "best_effort",
                _ => "none",
            },
            greatest_token: guarantees.greatest_token,
            token_floor: floor.map(|floor| Floor::new(floor, None)),
            loss: guarantees.loss,
            fixed_term: guarantees.fixed_term,
            ttl_min_ms: guarantees.ttl.start().as_millis(),
            ttl_max_ms: guarantees.ttl.end().as_millis(),
            default_ttl_ms: guarantees.default_ttl.as_millis(),
            expiry_slack_ms: guarantees.expiry_slack.as_millis(),
            names_at_once: guarantees.names_at_once,
            detach: guarantees.detach,
            marks: guarantees.marks,
            no_other_kinds: guarantees.no_other_kinds,
            cautions: guarantees.cautions.clone(),
        }
    }
}

fn list(items: &[impl ToString], between: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

fn span(millis: u128) -> String {
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    shown(Duration::from_millis(millis)).to_string()
}

impl Promises {
    fn rows(&self) -> Vec<Vec<String>> {
        let yes = |so| if so { "yes" } else { "no" }.to_owned();
        let above = self.token_floor.as_ref().map(|floor| floor.above.to_string());
        let above = above.unwrap_or_else(|| "not told".to_owned());
        [
            ("store", self.store.to_owned()),
            ("kinds", list(self.kinds, ", ")),
            ("a held lock survives a restart of the server", yes(self.survives.restart)),
            (".. and the loss of a node", yes(self.survives.failover)),
            ("a holder may be told after the next grant if", list(&self.overlaps, "; ")),
            ("first come, first served", yes(self.fairness == Fairness::Fifo)),
            ("waiters are told, and do not poll", yes(self.wake == Wake::Push)),
            ("fencing tokens", self.fencing.replace('_', " ")),
            (".. are above", above),
            (".. and at most", self.greatest_token.to_string()),
            ("a lock can be left to another process", yes(self.detach)),
            (
                "a mark of work that is done is lost by",
                self.marks.unwrap_or("none is kept").to_owned(),
            ),
            (
                "TTL",
                format!(
                    "{} to {}, default {}",
                    span(self.ttl_min_ms),
                    span(self.ttl_max_ms),
                    span(self.default_ttl_ms)
                ),
            ),
        ]
        .into_iter()
        .chain(
            self.clock_jumps
                .map(|jumps| ("jumps of clocks that let a second holder in", jumps.to_string())),
        )
        .chain(self.no_other_kinds.map(|why| ("no other kinds, since", why.to_owned())))
        .chain(self.cautions.iter().map(|caution| ("caution", caution.clone())))
        .map(|(label, value)| vec![label.to_owned(), value])
        .collect()
    }
}
