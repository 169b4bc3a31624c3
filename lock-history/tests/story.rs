//! Histories of locks that keep their promises.

use lock_history::{Fault, Header, History, Kind, Loss, Recorder};

const MILLI: u64 = 1_000_000;
/// The permits of each semaphore. Every round of a story holds all of them.
pub const LIMIT: u32 = 5;
/// Longest time for which a lock is free between two rounds.
pub const PAUSE: u64 = 20 * MILLI;

/// A hold, identified by its place in the story.
#[derive(Clone, Debug)]
pub struct Grant {
    pub name: String,
    pub kind: Kind,
    pub asked: u64,
    pub granted: u64,
    pub valid: u64,
    pub end: End,
    pub token: u64,
    /// Accepted writes: time and token.
    pub writes: Vec<(u64, u64)>,
    pub rejected: Vec<(u64, u64)>,
    /// The round of its name.
    pub round: usize,
    pub revoked: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum End {
    Released(u64, u64),
    Lost(u64, Loss),
}

/// All holds of a story, and the requests without a grant.
#[derive(Clone, Debug, Default)]
pub struct Story {
    pub grants: Vec<Grant>,
    /// Name, asked, ended.
    pub in_vain: Vec<(String, u64, u64)>,
    pub faults: Vec<Fault>,
}

/// A generator with a different sequence for each seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A story of two locks and a semaphore, with `rounds` rounds of holds each.
pub fn story(seed: u64, rounds: usize) -> Story {
    let mut random = Random(seed);
    let mut story = Story::default();
    for name in ["a", "b"] {
        story.play(&mut random, name, rounds, |random| match random.below(3) {
            0 => vec![Kind::Shared; 1 + random.below(4) as usize],
            _ => vec![Kind::Exclusive],
        });
    }
    story.play(&mut random, "s", rounds, |random| {
        let first = 1 + random.below(u64::from(LIMIT) - 1) as u32;
        [first, LIMIT - first].map(|permits| Kind::Permits { permits, limit: LIMIT }).to_vec()
    });
    story
}

impl Story {
    fn play(
        &mut self,
        random: &mut Random,
        name: &str,
        rounds: usize,
        kinds: impl Fn(&mut Random) -> Vec<Kind>,
    ) {
        let (mut now, mut token) = (MILLI, 0);
        for round in 0..rounds {
            let began = now;
            let mut over = now;
            for kind in kinds(random) {
                token += 1 + random.below(3);
                let grant = Grant::play(random, name, kind, round, began, token);
                over = over.max(grant.over());
                self.grants.push(grant);
            }
            if random.below(4) == 0 {
                self.in_vain.push((name.to_owned(), began, over));
            }
            now = over + random.below(PAUSE);
        }
    }

    /// Pairs of exclusive holds of one name, with no hold in between, by their places.
    pub fn neighbours(&self) -> Vec<(usize, usize)> {
        self.pairs(Kind::Exclusive, Kind::Exclusive)
    }

    /// Pairs of holds of these kinds, the second in the round after the first.
    pub fn pairs(&self, first: Kind, second: Kind) -> Vec<(usize, usize)> {
        let same =
            |a: &Grant, kind| std::mem::discriminant(&a.kind) == std::mem::discriminant(&kind);
        let places = 0..self.grants.len();
        let all = places.clone().flat_map(|a| places.clone().map(move |b| (a, b)));
        all.filter(|(a, b)| {
            let (a, b) = (&self.grants[*a], &self.grants[*b]);
            a.name == b.name && a.round + 1 == b.round && same(a, first) && same(b, second)
        })
        .collect()
    }

    pub fn history(&self) -> History {
        let recorder = Recorder::default();
        for (place, grant) in self.grants.iter().enumerate() {
            grant.record(&recorder.client(format!("c{place}")).asked(
                grant.asked,
                grant.name.as_str(),
                grant.kind,
            ));
        }
        for (place, (name, asked, ended)) in self.in_vain.iter().enumerate() {
            let kind = if name == "s" {
                Kind::Permits { permits: 1, limit: LIMIT }
            } else {
                Kind::Exclusive
            };
            let client = recorder.client(format!("v{place}"));
            client.asked(*asked, name.as_str(), kind).ended(*ended, "gave up");
        }
        self.faults.iter().for_each(|fault| recorder.fault(fault.clone()));
        recorder.history(Header::new("story", 1, "none"))
    }
}

impl Grant {
    fn play(
        random: &mut Random,
        name: &str,
        kind: Kind,
        round: usize,
        began: u64,
        token: u64,
    ) -> Self {
        let granted = began + random.below(3 * MILLI);
        let valid = granted + 5 * MILLI + random.below(50 * MILLI);
        // Before all grants of its round, so that the round has no order.
        let asked = began.saturating_sub(random.below(80 * MILLI));
        let over = valid + 1 + random.below(5 * MILLI);
        let end = match random.below(3) {
            0 => End::Lost(over, Loss::Deadline),
            _ => End::Released(over, over + random.below(MILLI)),
        };
        let writes = match kind {
            Kind::Exclusive => vec![(granted + random.below(valid - granted), token)],
            _ => Vec::new(),
        };
        let (name, rejected) = (name.to_owned(), Vec::new());
        let revoked = None;
        Self { name, kind, asked, granted, valid, end, token, writes, rejected, round, revoked }
    }

    fn over(&self) -> u64 {
        match self.end {
            End::Released(_, at) | End::Lost(at, _) => at,
        }
    }

    fn record(&self, log: &lock_history::AttemptLog) {
        log.granted(self.granted, Some(self.token));
        log.valid(self.granted + 1, true);
        self.writes.iter().for_each(|(at, token)| log.wrote(*at, *token));
        self.revoked.iter().for_each(|at| log.revoked(*at));
        log.valid(self.valid, true);
        match self.end {
            End::Released(asked, confirmed) => {
                log.releasing(asked);
                log.released(confirmed);
            }
            End::Lost(at, loss) => log.lost(at, loss, "as planned"),
        }
        self.rejected.iter().for_each(|(at, token)| log.rejected(*at, *token));
    }
}
