//! Counting the votes of one round.

use std::{cmp::Reverse, collections::HashMap};

use uuid::Uuid;

use super::{fault::Fault, script::Answer};

/// The number of votes that a majority of `nodes` needs.
pub(super) const fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The result of a round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// A majority has voted for this attempt and keeps its token.
    Elected,
    /// A majority has voted for this attempt, but a node has met this token or a greater one. The
    /// next candidate.
    Again(u64),
    /// Others have votes.
    Contended,
    /// Too few nodes have answered to tell.
    Unknown,
}

/// The votes of one round.
#[derive(Debug)]
pub(super) struct Tally {
    attempt: Uuid,
    candidate: u64,
    answers: Vec<Option<Result<Answer, Fault>>>,
}

impl Tally {
    /// Begins to count.
    pub(super) fn new(attempt: Uuid, candidate: u64, nodes: usize) -> Self {
        Self { attempt, candidate, answers: vec![None; nodes] }
    }

    /// Counts a node's answer.
    pub(super) fn count(&mut self, node: usize, answer: Result<Answer, Fault>) {
        self.answers[node] = Some(answer);
    }

    /// Returns the nodes that may have this attempt's vote, among those that have answered.
    pub(super) fn placed(&self) -> impl Iterator<Item = usize> {
        let may = |answer: &Result<Answer, Fault>| match answer {
            Ok(answer) => matches!(answer, Answer::Yes { .. }),
            Err(fault) => fault.was_sent(),
        };
        let answers = self.answers.iter().enumerate();
        answers.filter(move |(_, answer)| answer.as_ref().is_some_and(may)).map(|(node, _)| node)
    }

    /// Returns the nodes whose answers do not count, with the reasons.
    pub(super) fn faults(&self) -> impl Iterator<Item = (usize, &Fault)> {
        let answers = self.answers.iter().enumerate();
        answers.filter_map(|(node, answer)| Some((node, answer.as_ref()?.as_ref().err()?)))
    }

    /// Returns the result as soon as no further answer can change it.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let (nodes, needed) = (self.answers.len(), quorum(self.answers.len()));
        let known = self.answers.iter().flatten().count();
        let (open, faults) = (nodes - known, self.faults().count());
        let (yes, no) = (self.votes().count(), known - faults - self.votes().count());
        if yes >= needed {
            return Some(self.judge_token());
        }
        if no > nodes - needed {
            return Some(Verdict::Contended);
        }
        if yes + open >= needed {
            return None;
        }
        if yes + no >= needed {
            return Some(Verdict::Contended);
        }
        (yes + no + open < needed).then_some(Verdict::Unknown)
    }

    /// Returns whether a majority has answered, and not all for this attempt: another one has votes,
    /// too.
    pub(super) fn is_split(&self) -> bool {
        let (votes, answers) = (self.votes().count(), self.answers().count());
        votes < answers && answers >= quorum(self.answers.len())
    }

    /// Judges the token of a majority: each of its nodes keeps a candidate above its last token. A
    /// greater token of a node outside the majority counts, too: it may be the only one that still
    /// knows the last token.
    fn judge_token(&self) -> Verdict {
        match self.fences().max().unwrap_or_default() {
            greatest if greatest >= self.candidate => Verdict::Again(greatest + 1),
            _ => Verdict::Elected,
        }
    }

    /// The last tokens of the nodes that have voted for this attempt.
    fn votes(&self) -> impl Iterator<Item = u64> {
        self.answers().filter_map(|answer| match answer {
            Answer::Yes { fence } => Some(*fence),
            Answer::No { .. } => None,
        })
    }

    fn fences(&self) -> impl Iterator<Item = u64> {
        self.answers().map(|answer| match answer {
            Answer::Yes { fence } | Answer::No { fence, .. } => *fence,
        })
    }

    fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.answers.iter().flatten().filter_map(|answer| answer.as_ref().ok())
    }

    /// Returns whether this attempt keeps its votes and asks again, if no attempt has a majority:
    /// the one with the most votes does; of several with as many, the one with the smallest id. All
    /// others take their votes back. So a split is over after a round or two.
    pub(super) fn leads_a_split(&self) -> bool {
        let mine = (self.votes().count(), Reverse(self.attempt));
        let mut others = HashMap::<Uuid, usize>::new();
        for answer in self.answers() {
            match answer {
                Answer::Yes { .. } => {}
                Answer::No { attempt: Some(attempt), .. } => {
                    *others.entry(*attempt).or_default() += 1;
                }
                // A foreign client keeps what it has.
                Answer::No { attempt: None, .. } => return false,
            }
        }
        mine.0 > 0 && others.into_iter().all(|(other, votes)| (votes, Reverse(other)) < mine)
    }
}

#[cfg(test)]
mod tests;
