//! Numbers and faults of a run, derived from its seed.

use std::{fmt, time::Duration};

/// Random numbers fixed by one seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the numbers for one part of a run, such as `worker 3`.
    pub fn of(seed: u64, part: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Self(part.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A time from `least` to `most`.
    pub fn time(&mut self, least: Duration, most: Duration) -> Duration {
        least + (most - least).mul_f64(self.below(1001) as f64 / 1000.0)
    }
}

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
