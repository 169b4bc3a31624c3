//! The faults of a run, derived from its seed.

use std::{fmt, time::Duration};

use crate::support::Random;

/// One fault of a run.
#[derive(Clone, Debug)]
pub struct Step {
    /// Time since the start of the run.
    pub at: Duration,
    pub lasts: Duration,
    pub kind: &'static str,
    /// Node, other node and client. A store takes the remainder of its own count.
    pub node: usize,
    pub other: usize,
    pub client: usize,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, lasts, kind, .. } = self;
        write!(f, "{:.1} s {kind} for {:.1} s", at.as_secs_f64(), lasts.as_secs_f64())
    }
}

/// Returns the faults of a run with this length, on a store with these kinds of faults. The same
/// seed gives the same faults. A third of them begin before the previous one ends.
pub fn plan(seed: u64, length: Duration, ttl: Duration, kinds: &[&'static str]) -> Vec<Step> {
    let mut random = Random::of(seed, "plan");
    let mut steps = Vec::new();
    let mut at = ttl / 2;
    loop {
        let lasts = match random.below(3) {
            0 => random.time(Duration::from_millis(50), ttl / 2),
            _ => random.time(ttl / 2, ttl * 2),
        };
        // The last fault is healed before the load ends.
        if at + lasts + ttl / 2 > length {
            return steps;
        }
        let [node, other, client] = [(); 3].map(|()| random.below(60));
        steps.push(Step { at, lasts, kind: random.pick(kinds), node, other, client });
        at += match random.percent(33) {
            true => lasts / 2,
            false => lasts + random.time(ttl / 10, ttl),
        };
    }
}
