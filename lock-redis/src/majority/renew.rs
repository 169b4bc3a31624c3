//! Renewal by a majority.

use std::{io, time::Duration};

use futures_util::StreamExt;
use lock_core::{Clock, Request};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    fault::Fault,
    script::{self, Renewed},
    store::Majority,
    vote::Vote,
};

/// A renewal waits this much longer for the nodes that a majority does not need.
const GRACE: Duration = Duration::from_millis(5);

/// Answers to a renewal, each with the node's number.
type Answers = Vec<(usize, Result<Renewed, Fault>)>;

impl Majority {
    /// Renews the votes of an attempt. `false` if so many nodes have none that there is no majority
    /// any more. Nodes that are free again vote anew: that carries the lock through further faults.
    pub(super) async fn renew_votes(&self, request: &Request, attempt: Uuid) -> io::Result<bool> {
        let (answers, renewed, gone) = self.renewals(request, attempt).await;
        if renewed >= self.needed() {
            self.asked.renew(attempt, request.ttl);
            self.vote_anew(request, attempt, &answers).await;
            return Ok(true);
        }
        if gone > self.nodes.len() - self.needed() {
            self.give_rest_back(request, attempt, &answers);
            return Ok(false);
        }
        let faults = answers.iter().filter_map(|(node, a)| Some((*node, a.as_ref().err()?)));
        // A node that has no vote any more is none of the faults, and is of no help either.
        let had = format!(
            "{renewed} of {} nodes have renewed their votes, {gone} have none any more",
            self.nodes.len()
        );
        Err(self.outage_of(&had, faults))
    }

    /// Takes back, in the background, the votes that a lost lock may still have.
    fn give_rest_back(&self, request: &Request, attempt: Uuid, answers: &Answers) {
        let asked = self.asked.nodes(attempt);
        let has_none = |node: usize| {
            let known = answers.iter().find(|(number, _)| *number == node);
            known.is_some_and(|(_, answer)| matches!(answer, Ok(Renewed::Free | Renewed::Other)))
        };
        let may = |node: &usize| asked.is_none_or(|asked| asked[*node]) && !has_none(*node);
        let back = self.back(request, attempt, None);
        for node in (0..self.nodes.len()).filter(may) {
            back.from(node);
        }
        self.asked.forget(attempt);
    }

    /// Asks all nodes. Waits until a majority has renewed or cannot any more; in the first case a
    /// little longer for the others. Returns also how many have renewed, and how many have no vote.
    async fn renewals(&self, request: &Request, attempt: Uuid) -> (Answers, usize, usize) {
        let command = script::renew(&self.key(&request.name), attempt, request.ttl);
        let limit = self.config.request_limit(request.ttl);
        let mut open = self.ask_all(command, limit, script::renewed);
        let (sent, mut answers, mut yes, mut gone) = (Clock::Boot.now(), Vec::new(), 0, 0);
        let mut wait = limit * 2;
        while let Ok(Some((node, answer))) = timeout(wait, open.next()).await {
            yes += usize::from(matches!(answer, Ok(Renewed::Yes { .. })));
            gone += usize::from(matches!(answer, Ok(Renewed::Free | Renewed::Other)));
            answers.push((node, answer));
            if gone > self.nodes.len() - self.needed() {
                break;
            }
            if yes >= self.needed() {
                wait = wait.min(Clock::Boot.now().since(sent) + GRACE);
            }
        }
        if !open.is_empty() {
            tokio::spawn(open.for_each(async |_| {}));
        }
        (answers, yes, gone)
    }

    /// Asks the nodes that are free for their votes, with the lock's token, which the others know.
    async fn vote_anew(&self, request: &Request, attempt: Uuid, answers: &Answers) {
        let is_free = |answer: &Result<Renewed, Fault>| matches!(answer, Ok(Renewed::Free));
        let free: Vec<_> = answers.iter().filter(|(_, a)| is_free(a)).map(|(n, _)| *n).collect();
        if free.is_empty() {
            return;
        }
        let token = answers.iter().filter_map(|(_, answer)| match answer {
            Ok(Renewed::Yes { fence }) => Some(*fence),
            _ => None,
        });
        let token = token.max().unwrap_or_default();
        let description = request.holder.to_string();
        let vote = Vote { attempt, ballot: self.next_ballot(), description };
        // Whatever they say: the majority has the lock. The requests are sent at the first poll, so
        // before those of a later release; a slow node must not delay the holder's deadline.
        let mut open = self.ask_for_votes(free, request, &vote, token);
        let answered = timeout(GRACE, open.by_ref().for_each(async |_| {})).await;
        if answered.is_err() {
            tokio::spawn(open.for_each(async |_| {}));
        }
    }
}
