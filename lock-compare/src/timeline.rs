//! A history prepared for drawing.

use std::collections::BTreeMap;

use lock_history::{Attempt, History, Misfit};
use lock_report::{FaultSpan, Lane, Mark, Span, State, Timeline};

/// Largest number of clients that are drawn.
const LANES: usize = 12;
/// Largest number of a client's attempts that are drawn.
const SPANS: usize = 40;

/// Prepares a history.
pub(crate) fn timeline(history: &History) -> Result<Timeline, Misfit> {
    let events = history.events.iter().map(|event| event.at);
    let times = events.chain(history.faults.iter().map(|fault| fault.from));
    let (start, end) = times.fold((u64::MAX, 0), |(a, b), at| (a.min(at), b.max(at)));
    let ms = |at: u64| at.saturating_sub(start) as f64 / 1e6;
    let mut clients: BTreeMap<(u64, String), Vec<Attempt>> = BTreeMap::new();
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    for attempt in history.attempts()? {
        let client = attempt.client.to_string();
        let first = *first.entry(client.clone()).or_insert(attempt.asked);
        clients.entry((first, client)).or_default().push(attempt);
    }
    let left_out = clients.len().saturating_sub(LANES);
    let lanes = clients.into_iter().take(LANES);
    let lanes = lanes.map(|((_, client), attempts)| lane(client, &attempts, end, &ms));
    let faults = history.faults.iter().map(|fault| FaultSpan {
        what: format!("{} of {}", fault.fault, fault.target),
        from: ms(fault.from),
        until: fault.until.map(&ms),
    });
    Ok(Timeline { lanes: lanes.collect(), faults: faults.collect(), until: ms(end), left_out })
}

fn lane(client: String, attempts: &[Attempt], end: u64, ms: &impl Fn(u64) -> f64) -> Lane {
    let (mut spans, mut marks) = (Vec::new(), Vec::new());
    for attempt in attempts.iter().take(SPANS) {
        spans.extend(spans_of(attempt, end, ms));
        marks.extend(marks_of(attempt, ms));
    }
    Lane { client, spans, marks }
}

fn spans_of(attempt: &Attempt, end: u64, ms: &impl Fn(u64) -> f64) -> Vec<Span> {
    let over = attempt.over().unwrap_or(end);
    let span = |state, from: u64, until: u64| Span {
        state,
        from: ms(from),
        until: ms(until.max(from)),
        token: attempt.token.filter(|_| state != State::Waits),
        name: attempt.name.to_string(),
    };
    let Some(granted) = attempt.granted else {
        return vec![span(State::Waits, attempt.asked, over)];
    };
    let sure = attempt.sure_until().unwrap_or(granted);
    let mut spans =
        vec![span(State::Waits, attempt.asked, granted), span(State::Holds, granted, sure)];
    if attempt.last > sure {
        spans.push(span(State::Past, sure, attempt.last));
    }
    spans
}

fn marks_of(attempt: &Attempt, ms: &impl Fn(u64) -> f64) -> Vec<Mark> {
    let mark = |at: u64, what: String| Mark { at: ms(at), what };
    let writes = attempt.writes.iter().map(|write| {
        let what = if write.accepted { "wrote" } else { "rejected" };
        mark(write.at, format!("{what} with token {}", write.token))
    });
    let lost = attempt.lost.iter().map(|lost| mark(lost.at, format!("lost: {}", lost.reason)));
    let ended = attempt.ended.iter().map(|(at, why)| mark(*at, why.to_string()));
    let released = attempt.released.iter().map(|at| mark(*at, "released".into()));
    writes.chain(lost).chain(ended).chain(released).collect()
}
