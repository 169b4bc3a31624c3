//! The words and numbers of tables and pages.

use lock_core::duration::shown;
use lock_report::number;

use crate::{Preset, Ratio, Report, Role, Rounds, Row, Section, Workload};

/// The median of the rounds.
pub(crate) fn median(rounds: &Rounds) -> Option<f64> {
    Ratio::of(rounds).map(|ratio| ratio.median)
}

/// The median of the rounds, or a dash.
pub(crate) fn count(rounds: Option<&Rounds>) -> String {
    rounds.and_then(median).map_or_else(dash, number)
}

/// The median of times in microseconds, with its unit, or a dash.
pub(crate) fn time(rounds: Option<&Rounds>) -> String {
    rounds.and_then(median).map_or_else(dash, micros)
}

/// A time given in microseconds, with its unit.
pub(crate) fn micros(time: f64) -> String {
    match time {
        1e6.. => format!("{} s", number(time / 1e6)),
        1e3.. => format!("{} ms", number(time / 1e3)),
        ..1.0 if time > 0.0 => format!("{} ns", number(time * 1e3)),
        _ => format!("{} µs", number(time)),
    }
}

pub(crate) fn ratio(ratio: Option<Ratio>) -> String {
    let with_interval = |Ratio { median, low, high }| {
        format!("{} ({} to {})", number(median), number(low), number(high))
    };
    ratio.map_or_else(dash, with_interval)
}

pub(crate) fn dash() -> String {
    "–".into()
}

/// What a contender stands for, in a cell.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Distlock => "distlock",
        Role::Unordered => "distlock without order",
        Role::FloorLeast => "floor: the least",
        Role::FloorKeys => "floor: same keys",
        Role::Usual => "usual way",
        Role::Imitation => "imitation",
    }
}

/// A contender with what it stands for.
pub(crate) fn named(row: &Row) -> String {
    match row.role {
        Role::Distlock => row.contender.clone(),
        other => format!("{} ({})", row.contender, role(other)),
    }
}

/// A run, a sentence each: when, on which machine, with which versions, and how to repeat it.
pub(crate) fn run(report: &Report) -> [String; 4] {
    let machine = &report.machine;
    let versions = report.versions.iter().map(|(name, version)| format!("{name} {version}"));
    let day = report.started.split('T').next().unwrap_or_default();
    [
        format!("A run of {day} that took {:.0} s.", report.took),
        format!(
            "Machine: {}, {}, {} cores, {} GiB.",
            machine.processor, machine.system, machine.cores, machine.memory
        ),
        format!("Versions: {}.", versions.collect::<Vec<_>>().join(", ")),
        format!("Command: `{}`.", report.command),
    ]
}

/// The tasks of a load, and where they are.
pub(crate) fn tasks(workload: &Workload) -> String {
    let processes = match workload.processes {
        1 => "one process".into(),
        count => format!("{count} processes"),
    };
    match workload.workers {
        1 => format!("one task in {processes}"),
        count => format!("{count} tasks in {processes}"),
    }
}

/// The load in words, with the rounds.
pub(crate) fn load(section: &Section) -> String {
    let count = section.rows.first().map_or(0, |row| row.figures.rate.0.len());
    match Preset::of_name(&section.preset) {
        Some(Preset::Crash) => {
            let ttl = section.workload.ttl.map_or_else(dash, |ttl| shown(ttl).to_string());
            format!(
                "One process holds a lock with a TTL of {ttl}, and another one waits. Half a \
                 second later the first is killed; {count} rounds. Where the TTL ends a dead \
                 holder's lock, this TTL makes the time. What ends with its connection or its \
                 process is free at once."
            )
        }
        Some(Preset::Leader) => format!(
            "A client asks for a lock that nobody holds, from the kill until it is granted; \
             {count} rounds. The time has the election of another leader in it, and no TTL of a \
             lock."
        ),
        _ => format!("{}; {count} rounds{}.", played(&section.workload), length(&section.workload)),
    }
}

fn played(workload: &Workload) -> String {
    let names = match workload.names {
        1 => "one name".into(),
        count => format!("{count} names"),
    };
    let hold = match workload.hold.is_zero() {
        true => "released at once".into(),
        false => format!("held for {}", shown(workload.hold)),
    };
    let starts = match (workload.herd, workload.rate) {
        (true, _) => "all ask at the same moment".into(),
        (false, None) => "closed loop".into(),
        (false, Some(rate)) => format!("open loop with {} starts per second", number(rate)),
    };
    let ttl =
        workload.ttl.map_or_else(String::new, |ttl| format!(", with a TTL of {}", shown(ttl)));
    format!("{}, {names}, {}, {hold}{ttl}; {starts}", tasks(workload), workload.kind)
}

/// A herd's round lasts until all have had the lock.
fn length(workload: &Workload) -> String {
    match workload.herd {
        true => String::new(),
        false => format!(" of {}", shown(workload.seconds)),
    }
}
