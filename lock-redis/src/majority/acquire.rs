//! One try of an attempt: a vote of each node.

use std::{
    io,
    time::{Duration, UNIX_EPOCH},
};

use futures_util::StreamExt;
use lock_core::{Clock, FencingToken, Request, deadline::jitter, wall_clock};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    release::Back,
    script::Answer,
    store::{Answers, Majority},
    tally::{Tally, Verdict},
    vote::Vote,
};

/// How often a try asks again before it gives up: for a greater token, or in a split.
const ROUNDS: u32 = 6;
/// The longest pause before the attempt that leads a split asks again.
const SPLIT: Duration = Duration::from_millis(4);
/// A split waits this much longer for slow nodes, and as long again as it took so far. Four times as
/// long in each further round: votes that stay, of a holder that has crashed, leave the decision to
/// slow nodes.
const GRACE: Duration = Duration::from_millis(5);

impl Majority {
    /// Takes the lock if a majority of nodes votes for this attempt; otherwise takes all votes
    /// back, in the background.
    pub(super) async fn acquire(
        &self,
        request: &Request,
        attempt: Uuid,
    ) -> io::Result<Option<FencingToken>> {
        let description = request.holder.to_string();
        let vote = Vote { attempt, ballot: self.next_ballot(), description };
        let (sent, mut candidate) = (Clock::Boot.now(), micros());
        for round in 0..ROUNDS {
            let grace = GRACE * 4_u32.pow(round);
            let (tally, open) = self.round(request, &vote, candidate, grace).await;
            // Without a verdict, the votes are split, and the rest of the nodes is slow.
            match tally.verdict().unwrap_or(Verdict::Contended) {
                // A grant that has used up half of its TTL is of little use.
                _ if Clock::Boot.now().since(sent) > request.ttl / 2 => {
                    return self.give_up(request, &vote, tally, open, round);
                }
                Verdict::Elected => {
                    // Further votes carry the lock through more faults.
                    tokio::spawn(open.for_each(async |_| {}));
                    return Ok(Some(FencingToken::new(candidate)));
                }
                Verdict::Again(next) => candidate = next,
                Verdict::Unknown
                    if round + 1 < ROUNDS && tally.faults().any(|(_, it)| it.lacked_script()) =>
                {
                    // Those that have voted already keep a greater one only.
                    candidate += 1;
                }
                Verdict::Contended if tally.leads_a_split() => {
                    candidate += 1;
                    Clock::Boot.sleep_until(Clock::Boot.now() + jitter(SPLIT)).await;
                }
                _ => return self.give_up(request, &vote, tally, open, round),
            }
        }
        // Every round was a near miss.
        self.take_back_everywhere(&self.back(request, attempt, Some(vote.ballot)), attempt);
        self.asked.forget(attempt);
        Ok(None)
    }

    /// Asks all nodes, and counts until the result is certain, or the votes are split and the nodes
    /// that could decide are slow. The answers that are open then come along.
    async fn round(
        &self,
        request: &Request,
        vote: &Vote,
        candidate: u64,
        grace: Duration,
    ) -> (Tally, Answers<Answer>) {
        let mut open = self.ask_for_votes(0..self.nodes.len(), request, vote, candidate);
        let mut tally = Tally::new(vote.attempt, candidate, self.nodes.len());
        let (sent, mut wait) = (Clock::Boot.now(), Duration::MAX);
        while let Ok(Some((node, answer))) = timeout(wait, open.next()).await {
            tally.count(node, answer);
            if tally.verdict().is_some() {
                break;
            }
            if tally.is_split() {
                wait = wait.min(Clock::Boot.now().since(sent) + grace);
            }
        }
        (tally, open)
    }

    /// Takes all votes back in the background, and returns the result of a try that failed.
    fn give_up(
        &self,
        request: &Request,
        vote: &Vote,
        tally: Tally,
        mut open: Answers<Answer>,
        round: u32,
    ) -> io::Result<Option<FencingToken>> {
        let back = self.back(request, vote.attempt, Some(vote.ballot));
        match round {
            0 => tally.placed().for_each(|node| back.from(node)),
            // Nodes of earlier rounds may have votes, too.
            _ => self.take_back_everywhere(&back, vote.attempt),
        }
        self.asked.forget(vote.attempt);
        let result = match tally.verdict() {
            Some(Verdict::Contended) | None => Ok(None),
            Some(Verdict::Unknown) => Err(self.outage(tally.faults())),
            _ => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the votes took longer than half of the TTL",
            )),
        };
        if open.is_empty() {
            return result;
        }
        tokio::spawn(async move {
            while let Some((node, answer)) = open.next().await {
                if answer.map_or_else(|f| f.was_sent(), |a| matches!(a, Answer::Yes { .. })) {
                    back.from(node);
                }
            }
        });
        result
    }

    /// From all nodes that were asked.
    fn take_back_everywhere(&self, back: &Back, attempt: Uuid) {
        let asked = self.asked.nodes(attempt).unwrap_or_default();
        (0..self.nodes.len()).filter(|node| asked[*node]).for_each(|node| back.from(node));
    }
}

/// The candidate for a token: the time of this client in microseconds. Below 2^53 for 250 years.
fn micros() -> u64 {
    let now = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or_default()
}
