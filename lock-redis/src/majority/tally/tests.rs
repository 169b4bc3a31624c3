//! Verdicts, and tokens against a model of the nodes.

use redis::Value;

use super::*;

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
    let silent = Err(Fault::silent(std::time::Duration::from_millis(1)));
    let tally = tally([yes(1), no(None), silent, Err(Fault::not_connected())]);
    assert_eq!(tally.placed().collect::<Vec<_>>(), [0, 2]);
}

/// A node as the script acquire sees it, without the votes: the lock is always free.
#[derive(Clone, Copy, Default)]
struct Node {
    fence: u64,
}

impl Node {
    fn acquire(&mut self, candidate: u64) -> Answer {
        let fence = self.fence;
        self.fence = fence.max(candidate);
        Answer::Yes { fence }
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

/// One acquire by a client whose clock shows `time`; the nodes answer in any order, and those that
/// come late, or are down, are not counted. Returns the token.
fn acquire(nodes: &mut [Node; NODES], time: u64, dice: &mut Dice) -> Option<u64> {
    let mut candidate = time;
    for _ in 0..6 {
        let mut order: Vec<_> = (0..NODES).collect();
        (1..NODES).rev().for_each(|last| order.swap(last, dice.roll(last as u64 + 1) as usize));
        let down = dice.roll(3) as usize;
        let mut tally = Tally::new(Uuid::nil(), candidate, NODES);
        for node in &order[down..] {
            // Also a request whose answer is not counted has its effect.
            let answer = nodes[*node].acquire(candidate);
            if tally.verdict().is_none() {
                tally.count(*node, Ok(answer));
            }
        }
        match tally.verdict() {
            Some(Verdict::Elected) => return Some(candidate),
            Some(Verdict::Again(next)) => candidate = next,
            _ => return None,
        }
    }
    None
}

/// How many nodes know the token.
fn knowing(nodes: &[Node; NODES], token: u64) -> usize {
    nodes.iter().filter(|node| node.fence >= token).count()
}

/// Runs one sequence. `keep`: no loss leaves less than a majority that knows the last token.
/// Returns whether tokens rose throughout.
fn tokens_rise(seed: u64, keep: bool) -> bool {
    let (mut dice, mut nodes, mut last) = (Dice(seed), [Node::default(); NODES], 0);
    for _ in 0..40 {
        if dice.roll(2) == 0 {
            let lost = dice.roll(NODES as u64) as usize;
            let mut after = nodes;
            after[lost] = Node::default();
            if !keep || knowing(&after, last) >= quorum(NODES) {
                nodes = after;
            }
        }
        // Clients' clocks that have nothing to do with each other.
        let time = 1 + dice.roll(1_000_000);
        if let Some(token) = acquire(&mut nodes, time, &mut dice) {
            if token <= last {
                return false;
            }
            last = token;
        }
    }
    assert!(last > 0, "no grant at all");
    true
}

#[test]
fn tokens_rise_in_1000_sequences_of_losses_that_leave_a_majority_of_the_data() {
    let falls = (0..1000).find(|seed| !tokens_rise(*seed, true));
    assert_eq!(falls, None, "the seed of a sequence in which a token does not rise");
}

/// The same with any loss: this is why the promise has its condition.
#[test]
fn tokens_may_fall_when_a_majority_has_lost_its_data_and_clocks_differ() {
    assert!((0..1000).any(|seed| !tokens_rise(seed, false)));
}
