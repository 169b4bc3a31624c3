//! The words and numbers of the page.

use lock_report::number;

use crate::{Ratio, Role, Rounds, Workload};

/// The median of the rounds.
pub(super) fn median(rounds: &Rounds) -> Option<f64> {
    Ratio::of(rounds).map(|ratio| ratio.median)
}

/// The median of the rounds, or a dash.
pub(super) fn count(rounds: Option<&Rounds>) -> String {
    rounds.and_then(median).map_or_else(dash, number)
}

/// The median of times in microseconds, with its unit, or a dash.
pub(super) fn time(rounds: Option<&Rounds>) -> String {
    rounds.and_then(median).map_or_else(dash, micros)
}

/// A time given in microseconds, with its unit.
pub(super) fn micros(time: f64) -> String {
    match time {
        1e6.. => format!("{} s", number(time / 1e6)),
        1e3.. => format!("{} ms", number(time / 1e3)),
        _ => format!("{} µs", number(time)),
    }
}

pub(super) fn ratio(ratio: Option<Ratio>) -> String {
    let with_interval = |Ratio { median, low, high }| {
        format!("{} ({} to {})", number(median), number(low), number(high))
    };
    ratio.map_or_else(dash, with_interval)
}

pub(super) fn dash() -> String {
    "–".into()
}

/// What a contender stands for, in a cell.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::Distlock => "distlock",
        Role::FloorLeast => "floor: the least",
        Role::FloorKeys => "floor: same keys",
        Role::Usual => "usual way",
        Role::Imitation => "imitation",
    }
}

/// The load in one sentence.
pub(super) fn load(workload: &Workload) -> String {
    let many = |count: u32, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let processes = match workload.processes {
        1 => "one process".into(),
        count => format!("{count} processes"),
    };
    let hold = match workload.hold.is_zero() {
        true => "released at once".into(),
        false => format!("held for {}", humantime::format_duration(workload.hold)),
    };
    let starts = match (workload.herd, workload.rate) {
        (true, _) => "all ask at the same moment".into(),
        (false, None) => "closed loop".into(),
        (false, Some(rate)) => format!("open loop, {} starts per second", number(rate)),
    };
    format!(
        "{} in {processes} on {}, {}, {hold}; {starts}.",
        many(workload.workers, "worker"),
        many(workload.names, "name"),
        workload.kind,
    )
}
