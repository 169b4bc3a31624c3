//! Which store to take for which need, as the verdicts and figures of a run have it.

use serde::Serialize;

use crate::{Cell, Figure, Nature, Report, Store, Verdict};

/// A need, and the stores that answer it in this run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What is needed, in one sentence.
    pub need: &'static str,
    /// The claims that answer it; the first one decides, the others must not speak against it.
    pub claims: &'static [u8],
    /// The stores that do, the fastest first as far as speed was measured.
    pub take: Vec<Choice>,
    /// The stores that were asked and do not, in the order of the report.
    pub leave: Vec<Choice>,
    /// The stores of which this run says nothing.
    pub unknown: Vec<Store>,
}

/// A store for a need, or against it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The store.
    pub store: Store,
    /// The claim whose cell says so.
    pub claim: u8,
    /// What the cell says.
    pub reason: String,
    /// Milliseconds of an acquisition, if the run measured them.
    pub speed: Option<f64>,
}

struct Need {
    words: &'static str,
    claims: &'static [u8],
    among: fn(Store) -> bool,
    is_speed: bool,
}

/// The claim that compares the stores' speed.
const SPEED: u8 = 24;

const NEEDS: [Need; 8] = [
    need("The lock must survive the loss of a node.", &[26], |_| true),
    Need {
        is_speed: true,
        ..need("The lock must be granted fast, over a network.", &[SPEED], |store| {
            !store.is_embedded()
        })
    },
    need("Nothing may be installed beside the program.", &[1, 2], Store::is_embedded),
    need("A late writer must be refused by its fencing token.", &[23, 1], |_| true),
    need("Many clients wait: in order of arrival, one woken per release.", &[12], |_| true),
    need("A crashed or cut-off client must never block the others.", &[2, 3], |_| true),
    need("An SQL database is there, and no other server shall be.", &[20, 1], |store| {
        matches!(store, Store::MySql | Store::Postgres | Store::Sqlite)
    }),
    need("One leader does the work, and the others stand by.", &[21], |_| true),
];

const fn need(words: &'static str, claims: &'static [u8], among: fn(Store) -> bool) -> Need {
    Need { words, claims, among, is_speed: false }
}

/// What a cell says to a need.
enum Answer {
    Yes(String),
    No(String),
    Silence,
}

impl Report {
    /// Which stores to take for which need. It is made of this report's verdicts and figures alone:
    /// of what distlock did on a store where it was played, else of the verdict.
    pub fn advice(&self) -> Vec<Advice> {
        NEEDS.iter().map(|need| self.advise(need)).collect()
    }

    /// The cell of a claim on a store.
    pub fn cell(&self, claim: u8, store: Store) -> Option<&Cell> {
        let row = self.rows.iter().find(|row| row.claim.number == claim)?;
        row.cells.iter().find(|cell| cell.store == store)
    }

    fn advise(&self, need: &Need) -> Advice {
        let (words, claims) = (need.words, need.claims);
        let (take, leave, unknown) = Default::default();
        let mut advice = Advice { need: words, claims, take, leave, unknown };
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
        let speed = |choice: &Choice| choice.speed.unwrap_or(f64::INFINITY);
        advice.take.sort_by(|a, b| speed(a).total_cmp(&speed(b)));
        advice
    }

    fn choice(&self, store: Store, claim: u8, reason: String) -> Choice {
        Choice { store, claim, reason, speed: self.cell(SPEED, store).and_then(speed) }
    }

    /// The claim whose cell decides, and what it says.
    fn answers(&self, need: &Need, store: Store) -> (u8, Answer) {
        let lead = need.claims[0];
        let judge = if need.is_speed { fast } else { answer };
        let said = |claim| self.cell(claim, store).map_or(Answer::Silence, judge);
        let first = said(lead);
        if !matches!(first, Answer::Yes(_)) {
            return (lead, first);
        }
        let against = need.claims[1..].iter().map(|claim| (*claim, said(*claim)));
        let mut against = against.filter(|(_, answer)| matches!(answer, Answer::No(_)));
        against.next().unwrap_or((lead, first))
    }
}

fn answer(cell: &Cell) -> Answer {
    let reason = cell.outcome.sentence.clone();
    match cell.outcome.verdict {
        Verdict::NotRun | Verdict::Failed => Answer::Silence,
        Verdict::CannotBeAsked => Answer::No(reason),
        verdict => {
            let ours = |nature| nature == Nature::Distlock;
            let mut sides = cell.outcome.sides.iter().filter(|side| ours(side.nature)).peekable();
            let kept = match sides.peek() {
                Some(_) => sides.all(|side| side.well),
                None => verdict == Verdict::Holds,
            };
            if kept { Answer::Yes(reason) } else { Answer::No(reason) }
        }
    }
}

fn fast(cell: &Cell) -> Answer {
    match speed(cell) {
        Some(_) => Answer::Yes(cell.outcome.sentence.clone()),
        None => Answer::Silence,
    }
}

/// The duration of an acquisition among the figures, in ms: the one that names the cell's store, for
/// others may stand beside it, else the first.
fn speed(cell: &Cell) -> Option<f64> {
    let is_speed = |figure: &&Figure| figure.unit == "ms" && figure.name.contains("acqui");
    let figures = || cell.outcome.figures.iter().filter(is_speed);
    let own = figures().find(|figure| figure.name.contains(cell.store.name()));
    own.or_else(|| figures().next()).map(|figure| figure.value)
}
