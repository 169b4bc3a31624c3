//! Advice which store to use for a need, from the verdicts and figures of a run.

use serde::Serialize;

use crate::{
    Cell, Nature, Report, Store,
    Verdict::{self, Breaks, Holds},
};

/// A need, with the stores that meet it in this run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The need in one sentence.
    pub need: &'static str,
    /// The claims that decide. The first one must say yes, and no other one may say no.
    pub claims: Vec<u8>,
    /// The stores that meet the need, sorted by measured speed, the fastest first.
    pub take: Vec<Choice>,
    /// The stores that do not meet the need, in the order of the report.
    pub leave: Vec<Choice>,
    /// The stores without a result in this run.
    pub unknown: Vec<Store>,
}

/// A store for a need, or against it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    pub store: Store,
    /// The claim with the deciding cell.
    pub claim: u8,
    /// The sentence of that cell.
    pub reason: String,
    /// The time of a free lock's grant, if the run measured it.
    pub speed: Option<Speed>,
}

/// The time that a store takes for a free lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Speed {
    pub ms: f64,
    /// Ratio to Redis, the fastest server in the articles, measured in the same minute. Stores are
    /// sorted by it.
    pub ratio: f64,
}

struct Need {
    words: &'static str,
    /// Each claim with the verdict that means yes.
    claims: &'static [(u8, Verdict)],
    among: fn(Store) -> bool,
}

/// The claim that compares the stores' speed. Its figures count, not its verdict.
const SPEED: u8 = 24;
/// The claim that counts wakes where a store has them. It cannot tell whose clients poll.
const WAKES: u8 = 12;
const POLLED: [Store; 2] = [Store::MySql, Store::Sqlite];

const NEEDS: [Need; 9] = [
    // The others have no node.
    need("The lock must survive the loss of a node.", &[(26, Holds)], is_server),
    need(
        "A stock must never be oversold: by one atomic step in the store, not by a lock alone.",
        &[(28, Breaks)],
        |_| true,
    ),
    need("The lock must be granted fast, over a network.", &[(SPEED, Holds)], is_server),
    need("Nothing may be installed beside the program.", &[(1, Holds), (2, Holds)], |store| {
        store.is_embedded()
    }),
    need(
        "A late writer must be refused by its fencing token (Redis may repeat one at a failover).",
        &[(23, Breaks), (1, Holds)],
        |_| true,
    ),
    need(
        "Many clients wait: in order of arrival, one woken per release.",
        &[(WAKES, Holds)],
        |_| true,
    ),
    need(
        "A crashed or cut-off client must never block the others.",
        &[(2, Holds), (3, Holds)],
        |_| true,
    ),
    need("There is an SQL database, and no other server is wanted.", &[(20, Breaks)], |store| {
        matches!(store, Store::MySql | Store::Postgres | Store::Sqlite)
    }),
    need("One leader does the work, and the others stand by.", &[(21, Holds)], |_| true),
];

const fn need(
    words: &'static str,
    claims: &'static [(u8, Verdict)],
    among: fn(Store) -> bool,
) -> Need {
    Need { words, claims, among }
}

fn is_server(store: Store) -> bool {
    !store.is_embedded()
}

enum Answer {
    Yes(String),
    No(String),
    Silence,
}

impl Report {
    /// Returns the stores to use for each need, by this report's verdicts and figures, and by who
    /// polls. Where distlock was played on a store, its result counts, otherwise the verdict.
    pub(crate) fn advice(&self) -> Vec<Advice> {
        NEEDS.iter().map(|need| self.advise(need)).collect()
    }

    /// Returns the cell of a claim on a store.
    pub fn cell(&self, claim: u8, store: Store) -> Option<&Cell> {
        let row = self.rows.iter().find(|row| row.claim.number == claim)?;
        row.cell(store)
    }

    fn advise(&self, need: &Need) -> Advice {
        let claims = need.claims.iter().map(|(claim, _)| *claim).collect();
        let (take, leave, unknown) = Default::default();
        let mut advice = Advice { need: need.words, claims, take, leave, unknown };
        for store in self.stores.iter().copied().filter(|store| (need.among)(*store)) {
            match self.answers(need, store) {
                (claim, Answer::Yes(reason)) => {
                    advice.take.push(self.choice(store, claim, reason));
                }
                (claim, Answer::No(reason)) => {
                    advice.leave.push(self.choice(store, claim, reason));
                }
                (_, Answer::Silence) => advice.unknown.push(store),
            }
        }
        let speed = |choice: &Choice| choice.speed.map_or(f64::INFINITY, |speed| speed.ratio);
        advice.take.sort_by(|a, b| speed(a).total_cmp(&speed(b)));
        advice
    }

    fn choice(&self, store: Store, claim: u8, reason: String) -> Choice {
        Choice { store, claim, reason, speed: self.cell(SPEED, store).and_then(speed) }
    }

    /// Returns the claim with the deciding cell, and its answer.
    fn answers(&self, need: &Need, store: Store) -> (u8, Answer) {
        let said = |(claim, yes): (u8, Verdict)| match self.cell(claim, store) {
            None => Answer::Silence,
            Some(cell) if claim == SPEED => fast(cell),
            Some(_) if claim == WAKES && POLLED.contains(&store) => {
                Answer::No("its clients poll: nobody is woken".to_owned())
            }
            Some(cell) => answer(cell, yes),
        };
        let lead = need.claims[0];
        let first = said(lead);
        if !matches!(first, Answer::Yes(_)) {
            return (lead.0, first);
        }
        let against = need.claims[1..].iter().map(|claim| (claim.0, said(*claim)));
        let mut against = against.filter(|(_, answer)| matches!(answer, Answer::No(_)));
        against.next().unwrap_or((lead.0, first))
    }
}

/// Yes if the verdict is `yes`, or if distlock kept its promises in every play of it.
fn answer(cell: &Cell, yes: Verdict) -> Answer {
    let outcome = &cell.outcome;
    let reason = outcome.sentence.clone();
    match outcome.verdict {
        Verdict::NotRun | Verdict::Failed => return Answer::Silence,
        Verdict::CannotBeAsked => return Answer::No(reason),
        verdict if verdict == yes => return Answer::Yes(reason),
        _ => {}
    }
    let mut ours = outcome.sides.iter().filter(|side| side.nature == Nature::Distlock).peekable();
    let kept = ours.peek().is_some() && ours.all(|side| side.well);
    if kept { Answer::Yes(reason) } else { Answer::No(reason) }
}

fn fast(cell: &Cell) -> Answer {
    match speed(cell) {
        Some(_) => Answer::Yes(cell.outcome.sentence.clone()),
        None => Answer::Silence,
    }
}

/// Returns the figure with the store's own name, and its ratio.
fn speed(cell: &Cell) -> Option<Speed> {
    let figures = || cell.outcome.figures.iter();
    let name = cell.store.name();
    let ms = figures().find(|figure| figure.unit == "ms" && figure.name.ends_with(name))?.value;
    let own = format!("{name} / ");
    let ratio = figures().find(|figure| figure.unit == "x" && figure.name.starts_with(&own));
    Some(Speed { ms, ratio: ratio.map_or(1.0, |figure| figure.value) })
}
