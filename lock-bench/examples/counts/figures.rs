//! The costs of one pair.

use std::{collections::BTreeMap, fmt};

use lock_lab::Counters;
use serde::{Deserialize, Serialize};

/// The part by which a cost may rise.
const MOST: f64 = 0.03;

/// What one run counts.
pub const INSTRUCTIONS: &str = "instructions";
pub const ALLOCATIONS: &str = "allocations";
pub const REQUESTS: &str = "requests";
/// In both directions.
pub const BYTES: &str = "bytes";
/// Calls that make a task of tokio.
pub const SPAWNS: &str = "spawns";
pub const RENEWALS: &str = "renewals";
/// 1 if it took so long that a renewal was due.
pub const LATE: &str = "late";

/// The costs among them.
const COSTS: [&str; 4] = [INSTRUCTIONS, ALLOCATIONS, REQUESTS, BYTES];

/// The costs of one pair by name. `None`: there are none, as without a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures(BTreeMap<String, Option<f64>>);

impl Figures {
    /// The costs by two runs, of which one had this many pairs more. Fails with the reason why they
    /// do not count. `alone`: by one task.
    pub fn between(
        short: &Counters,
        long: &Counters,
        pairs: u64,
        alone: bool,
    ) -> Result<Self, String> {
        let has = |what: &str| short.get(what) + long.get(what) > 0;
        if has(LATE) {
            return Err("it took a third of the TTL, so renewals were due".to_owned());
        } else if has(RENEWALS) {
            return Err("a renewal fell into a run".to_owned());
        }
        let spawns = long.get(SPAWNS).checked_sub(short.get(SPAWNS));
        if !spawns.is_some_and(|more| more.is_multiple_of(pairs)) {
            return Err("a work moved to a task of its own".to_owned());
        }
        let more = long.since(short);
        let requests = more.get(REQUESTS);
        if alone && !requests.is_multiple_of(pairs) {
            return Err(format!("{pairs} pairs made {requests} requests: some are not theirs"));
        }
        Ok(Self::of(&more, pairs))
    }

    /// The costs of this many pairs, disturbed or not.
    pub fn of(counted: &Counters, pairs: u64) -> Self {
        let per_pair = |count: u64| (count as f64 / pairs as f64 * 100.).round() / 100.;
        let cost = |what: &str| Some(counted.get(what)).filter(|count| *count > 0).map(per_pair);
        Self(COSTS.map(|what| (what.to_owned(), cost(what))).into())
    }

    /// The least of both.
    pub fn least(self, other: &Self) -> Self {
        let least = |(what, cost): (String, Option<f64>)| {
            let other = other.0.get(&what).copied().flatten();
            (what, cost.zip(other).map(|(a, b)| a.min(b)))
        };
        Self(self.0.into_iter().map(least).collect())
    }

    /// A sentence for each cost that is by more than 3 % higher than before.
    pub fn risen(&self, before: &Self) -> Vec<String> {
        let risen = self.0.iter().filter_map(|(what, now)| {
            let (now, before) = ((*now)?, before.0.get(what).copied().flatten().unwrap_or(0.));
            let is_more = now > before * (1. + MOST);
            is_more.then(|| format!("{now:.2} {what}, and {before:.2} before"))
        });
        risen.collect()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |what: &&str| Some(format!("{:.2} {what}", (*self.0.get(*what)?)?));
        let all: Vec<_> = COSTS.iter().filter_map(shown).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pairs: u64, renewals: u64, moved: u64) -> Counters {
        Counters::from_iter([
            (INSTRUCTIONS, 1_000_000 + 500 * pairs),
            (ALLOCATIONS, 900 + 3 * pairs),
            (SPAWNS, 5 + moved),
            (REQUESTS, 7 + 2 * pairs + renewals),
            (RENEWALS, renewals),
            (BYTES, 90 * pairs),
        ])
    }

    #[test]
    fn the_difference_of_two_runs_is_the_cost_and_only_of_undisturbed_ones() {
        let short = cost(200, 0, 0);
        let between = |short: &Counters, long: &Counters| Figures::between(short, long, 400, true);
        let figures = between(&short, &cost(600, 0, 0)).unwrap().to_string();
        let expected = "500.00 instructions, 3.00 allocations, 2.00 requests, 90.00 bytes";
        assert_eq!(figures, expected);
        for (renewals, moved, why) in [(1, 0, "renewal"), (0, 1, "task of its own")] {
            let disturbed = |pairs| cost(pairs, renewals, moved);
            assert!(between(&short, &disturbed(600)).unwrap_err().contains(why));
            assert!(between(&disturbed(200), &cost(600, 0, 0)).unwrap_err().contains(why));
        }
        let idle: Counters = cost(600, 0, 0).iter().chain([(REQUESTS, 3)]).collect();
        assert!(between(&short, &idle).unwrap_err().contains("400 pairs made 803 requests"));
    }

    #[test]
    fn a_rise_counts_beyond_three_parts_of_a_hundred() {
        let of =
            |instructions| Figures::of(&Counters::from_iter([(INSTRUCTIONS, instructions)]), 1);
        assert!(of(1029).risen(&of(1000)).is_empty());
        assert_eq!(of(1031).risen(&of(1000)).len(), 1);
        assert!(of(900).risen(&of(1000)).is_empty());
    }
}
