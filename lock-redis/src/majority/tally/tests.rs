//! Verdicts, and tokens against a model of the nodes.

use redis::Value;

use super::*;
use crate::error;

const NODES: usize = 5;

fn yes(fence: u64) -> Result<Answer, Fault> {
    Ok(Answer::Yes { fence })
}

fn no(attempt: Option<Uuid>) -> Result<Answer, Fault> {
    Ok(Answer::No { fence: 3, attempt })
}

fn fault() -> Result<Answer, Fault> {
    Err(Fault::odd(&Value::Nil))
}

fn tally(answers: impl IntoIterator<Item = Result<Answer, Fault>>) -> Tally {
    let mut tally = Tally::new(Uuid::nil(), 10, NODES);
    answers.into_iter().enumerate().for_each(|(node, answer)| tally.count(node, answer));
    tally
}

#[test]
fn a_verdict_comes_as_soon_as_it_is_certain() {
    for (answers, verdict) in [
        (vec![yes(1), yes(9)], None),
        (vec![yes(1), yes(9), yes(0)], Some(Verdict::Elected)),
        (vec![fault(), no(None), yes(1), yes(1), yes(1)], Some(Verdict::Elected)),
        (vec![yes(1), yes(10), yes(1)], Some(Verdict::Again(11))),
        (vec![no(None), no(None)], None),
        (vec![no(None), no(None), no(None)], Some(Verdict::Contended)),
        (vec![fault(), fault(), no(None), yes(1)], None),
        (vec![fault(), fault(), no(None), yes(1), yes(1)], Some(Verdict::Contended)),
        (vec![fault(), fault(), yes(1), yes(1)], None),
        (vec![fault(), fault(), fault()], Some(Verdict::Unknown)),
    ] {
        assert_eq!(tally(answers.clone()).verdict(), verdict, "{answers:?}");
    }
}

#[test]
fn a_split_does_not_wait_for_slow_nodes() {
    for (answers, split) in [
        (vec![yes(1), yes(1), no(None)], true),
        (vec![yes(1), yes(1), no(None), no(None)], true),
        (vec![yes(1), no(None), fault(), fault()], false),
        (vec![yes(1), yes(1), fault(), fault()], false),
    ] {
        assert_eq!(tally(answers.clone()).is_split(), split, "{answers:?}");
    }
}

/// The greater token may be on a node that has voted for another.
#[test]
fn a_greater_token_anywhere_counts() {
    let mut tally = tally([yes(1), yes(1), Ok(Answer::No { fence: 20, attempt: None })]);
    tally.count(3, yes(1));
    assert_eq!(tally.verdict(), Some(Verdict::Again(21)));
}

#[test]
fn the_attempt_with_the_most_votes_leads_a_split() {
    let [small, great] = [1, 2].map(Uuid::from_u128);
    let mut split = Tally::new(great, 10, NODES);
    for (node, answer) in [yes(1), yes(1), no(Some(small)), no(Some(small))].into_iter().enumerate()
    {
        split.count(node, answer);
    }
    assert!(!split.leads_a_split(), "the smaller id wins between equals");
    split.count(4, yes(1));
    assert!(split.leads_a_split());
    split.count(4, no(None));
    assert!(!split.leads_a_split(), "a foreign client keeps its vote");
}

#[test]
fn votes_that_may_be_there_are_taken_back() {
    let silent = Err(Fault::of(error::silent(std::time::Duration::from_millis(1))));
    let unconnected = Err(Fault::Down(error::closed_link()));
    let tally = tally([yes(1), no(None), silent, unconnected]);
    assert_eq!(tally.placed().collect::<Vec<_>>(), [0, 2]);
}

/// A node as the script acquire sees it.
#[derive(Clone, Copy, Default)]
struct Node {
    fence: u64,
    vote: Option<Uuid>,
    /// Its votes do not count: it has lost its data.
    is_young: bool,
}

impl Node {
    fn acquire(&mut self, attempt: Uuid, candidate: u64) -> Result<Answer, Fault> {
        let (fence, other) = (self.fence, self.vote.filter(|vote| *vote != attempt));
        if other.is_none() {
            (self.vote, self.fence) = (Some(attempt), fence.max(candidate));
        }
        match (self.is_young, other) {
            (true, _) => Err(Fault::Young(std::time::Duration::from_secs(1))),
            (_, None) => Ok(Answer::Yes { fence }),
            (_, attempt) => Ok(Answer::No { fence, attempt }),
        }
    }

    fn release(&mut self, attempt: Uuid) {
        self.vote = self.vote.filter(|vote| *vote != attempt);
    }
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// The nodes, and what has happened to them.
struct World {
    nodes: [Node; NODES],
    dice: Dice,
    /// How often a node was young, had voted for another, and has voted anew for a holder.
    young: usize,
    refused: usize,
    anew: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self { nodes: Default::default(), dice: Dice(seed), young: 0, refused: 0, anew: 0 }
    }

    /// One acquire by a client whose clock shows `time`, beside another attempt. The nodes answer in
    /// any order, and those that come late, or are down, are not counted. Returns the token.
    fn acquire(&mut self, time: u64) -> Option<u64> {
        let [attempt, other] = [0; 2].map(|_| Uuid::from_u128(self.dice.roll(u64::MAX).into()));
        self.contend(other);
        let mut candidate = time;
        for _ in 0..6 {
            let tally = self.round(attempt, candidate);
            match tally.verdict() {
                Some(Verdict::Elected) => {
                    self.vote_anew(attempt, &tally, candidate);
                    self.release(attempt);
                    return Some(candidate);
                }
                Some(Verdict::Again(next)) => candidate = next,
                Some(Verdict::Contended) if tally.leads_a_split() => candidate += 1,
                _ => break,
            }
            if self.dice.roll(2) == 0 {
                self.release(other);
            }
        }
        self.release(attempt);
        None
    }

    /// Asks nodes in any order, some of which are down.
    fn round(&mut self, attempt: Uuid, candidate: u64) -> Tally {
        let mut order: Vec<_> = (0..NODES).collect();
        for last in (1..NODES).rev() {
            order.swap(last, self.dice.roll(last as u64 + 1) as usize);
        }
        let down = self.dice.roll(3) as usize;
        let mut tally = Tally::new(attempt, candidate, NODES);
        for node in &order[down..] {
            // Also a request whose answer is not counted has its effect.
            let answer = self.nodes[*node].acquire(attempt, candidate);
            self.young += usize::from(answer.is_err());
            self.refused += usize::from(matches!(answer, Ok(Answer::No { .. })));
            if tally.verdict().is_none() {
                tally.count(*node, answer);
            }
        }
        tally
    }

    /// Another attempt gets votes of a minority, perhaps without any data yet.
    fn contend(&mut self, other: Uuid) {
        self.nodes.iter_mut().for_each(|node| node.vote = None);
        let time = self.time();
        for _ in 0..self.dice.roll(3) {
            let node = self.dice.roll(NODES as u64) as usize;
            let _ = self.nodes[node].acquire(other, time);
        }
    }

    /// A renewal asks the nodes that are free, with the greatest token that the others know.
    fn vote_anew(&mut self, attempt: Uuid, tally: &Tally, token: u64) {
        let greatest = tally.votes().max().unwrap_or_default().max(token);
        for node in self.nodes.iter_mut().filter(|node| node.vote.is_none()) {
            let _ = node.acquire(attempt, greatest);
            self.anew += 1;
        }
    }

    fn release(&mut self, attempt: Uuid) {
        self.nodes.iter_mut().for_each(|node| node.release(attempt));
    }

    /// Clients' clocks that have nothing to do with each other.
    fn time(&mut self) -> u64 {
        1 + self.dice.roll(1_000_000)
    }

    /// A node loses its data. `keep`: unless less than a majority would know the last token.
    fn lose(&mut self, keep: bool, last: u64) {
        let lost = self.dice.roll(NODES as u64) as usize;
        let knows = |(node, known): (usize, &Node)| node != lost && known.fence >= last;
        let knowing = self.nodes.iter().enumerate().filter(|it| knows(*it)).count();
        if !keep || knowing >= quorum(NODES) {
            self.nodes[lost] = Node { is_young: self.dice.roll(2) == 0, ..Node::default() };
        }
    }

    /// Runs one sequence. Returns whether tokens rose throughout.
    fn tokens_rise(&mut self, keep: bool) -> bool {
        let mut last = 0;
        for _ in 0..40 {
            if self.dice.roll(2) == 0 {
                self.lose(keep, last);
            }
            if self.dice.roll(4) == 0 {
                self.nodes.iter_mut().for_each(|node| node.is_young = false);
            }
            let time = self.time();
            if let Some(token) = self.acquire(time) {
                if token <= last {
                    return false;
                }
                last = token;
            }
        }
        assert!(last > 0, "no grant at all");
        true
    }
}

#[test]
fn tokens_rise_in_1000_sequences_of_losses_that_leave_a_majority_of_the_data() {
    let (mut young, mut refused, mut anew) = (0, 0, 0);
    for seed in 0..1000 {
        let mut world = World::new(seed);
        assert!(world.tokens_rise(true), "sequence {seed}");
        young += world.young;
        refused += world.refused;
        anew += world.anew;
    }
    assert!([young, refused, anew].iter().all(|count| *count > 1000), "{young} {refused} {anew}");
}

/// The same with any loss: this is why the promise has its condition.
#[test]
fn tokens_may_fall_when_a_majority_has_lost_its_data_and_clocks_differ() {
    assert!((0..1000).any(|seed| !World::new(seed).tokens_rise(false)));
}
