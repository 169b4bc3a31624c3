//! The costs of one pair.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::callgrind::Profile;

/// The part by which a cost may rise.
const MOST: f64 = 0.03;

/// What one run has cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub profile: Profile,
    /// `None` without a server.
    pub server: Option<Server>,
    /// Whether it took so long that a renewal was due.
    pub late: bool,
}

impl Cost {
    fn requests(&self) -> u64 {
        self.server.map_or(0, |server| server.requests)
    }

    fn more_than(&self, other: &Self, of: fn(&Self) -> u64) -> u64 {
        of(self).saturating_sub(of(other))
    }
}

/// What a run has cost at the server.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub requests: u64,
    pub renewals: u64,
    /// In both directions.
    pub bytes: u64,
}

/// The costs of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub instructions: f64,
    pub allocations: f64,
    pub requests: Option<f64>,
    pub bytes: Option<f64>,
}

impl Figures {
    /// The costs by two runs, of which one had this many pairs more. Fails with the reason why they
    /// do not count. `alone`: by one task.
    pub fn between(short: &Cost, long: &Cost, pairs: u64, alone: bool) -> Result<Self, String> {
        let is_renewed = |cost: &Cost| cost.server.is_some_and(|server| server.renewals > 0);
        if short.late || long.late {
            return Err("it took a third of the TTL, so renewals were due".to_owned());
        } else if is_renewed(short) || is_renewed(long) {
            return Err("a renewal fell into a run".to_owned());
        }
        let spawns = long.profile.spawns.checked_sub(short.profile.spawns);
        if !spawns.is_some_and(|more| more.is_multiple_of(pairs)) {
            return Err("a work moved to a task of its own".to_owned());
        }
        let requests = long.more_than(short, Cost::requests);
        if alone && !requests.is_multiple_of(pairs) {
            return Err(format!("{pairs} pairs made {requests} requests: some are not theirs"));
        }
        Ok(Self::of_difference(short, long, pairs))
    }

    /// The costs by two runs, of which one had this many pairs more, disturbed or not.
    pub fn of_difference(short: &Cost, long: &Cost, pairs: u64) -> Self {
        let per_pair = |of: fn(&Cost) -> u64| {
            (long.more_than(short, of) as f64 / pairs as f64 * 100.).round() / 100.
        };
        let at_server = |of: fn(&Cost) -> u64| long.server.map(|_| per_pair(of));
        Self {
            instructions: per_pair(|cost| cost.profile.instructions),
            allocations: per_pair(|cost| cost.profile.allocations),
            requests: at_server(Cost::requests),
            bytes: at_server(|cost| cost.server.map_or(0, |server| server.bytes)),
        }
    }

    /// The least of both.
    pub fn least(self, other: Self) -> Self {
        let least = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.min(b));
        Self {
            instructions: self.instructions.min(other.instructions),
            allocations: self.allocations.min(other.allocations),
            requests: least(self.requests, other.requests),
            bytes: least(self.bytes, other.bytes),
        }
    }

    /// A sentence for each cost that is by more than 3 % higher than before.
    pub fn risen(&self, before: &Self) -> Vec<String> {
        let costs = self.costs().into_iter().zip(before.costs());
        let risen = costs.filter_map(|((what, now), (_, before))| {
            let (now, before) = now.zip(before)?;
            let is_more = now > before * (1. + MOST);
            is_more.then(|| format!("{now:.2} {what}, and {before:.2} before"))
        });
        risen.collect()
    }

    fn costs(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("instructions", Some(self.instructions)),
            ("allocations", Some(self.allocations)),
            ("requests", self.requests),
            ("bytes", self.bytes),
        ]
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(what, count): (&str, Option<f64>)| Some(format!("{:.2} {what}", count?));
        let all: Vec<_> = self.costs().into_iter().filter_map(shown).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pairs: u64, renewals: u64, moved: u64) -> Cost {
        let (instructions, allocations) = (1_000_000 + 500 * pairs, 900 + 3 * pairs);
        let profile = Profile { instructions, allocations, spawns: 5 + moved };
        let server = Server { requests: 7 + 2 * pairs + renewals, renewals, bytes: 90 * pairs };
        Cost { profile, server: Some(server), late: false }
    }

    #[test]
    fn the_difference_of_two_runs_is_the_cost_and_only_of_undisturbed_ones() {
        let short = cost(200, 0, 0);
        let between = |short: Cost, long: Cost| Figures::between(&short, &long, 400, true);
        let figures = between(short, cost(600, 0, 0)).unwrap();
        assert_eq!((figures.instructions, figures.allocations), (500., 3.));
        assert_eq!((figures.requests, figures.bytes), (Some(2.), Some(90.)));
        for (renewals, moved, why) in [(1, 0, "renewal"), (0, 1, "task of its own")] {
            let disturbed = |pairs| cost(pairs, renewals, moved);
            assert!(between(short, disturbed(600)).unwrap_err().contains(why));
            assert!(between(disturbed(200), cost(600, 0, 0)).unwrap_err().contains(why));
        }
        let mut idle = cost(600, 0, 0);
        idle.server.as_mut().unwrap().requests += 3;
        assert!(between(short, idle).unwrap_err().contains("400 pairs made 803 requests"));
    }

    #[test]
    fn a_rise_counts_beyond_three_parts_of_a_hundred() {
        let of = |instructions| Figures {
            instructions,
            allocations: 1.,
            requests: None,
            bytes: Some(9.),
        };
        assert!(of(1029.).risen(&of(1000.)).is_empty());
        assert_eq!(of(1031.).risen(&of(1000.)).len(), 1);
        assert!(of(900.).risen(&of(1000.)).is_empty());
    }
}
