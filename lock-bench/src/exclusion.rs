//! Two workers never hold a lock that excludes one of them.

use std::{fmt::Write, sync::Arc};

use lock_history::{Checker, Event, Grade, Header, History, Kind as Held, Violation, What};

use crate::{Failure, Kind, Turn, Violated, Workload};

/// How many grants of a round are checked: the first ones, in one piece.
const CHECKED: usize = 20_000;
/// How many holds a timeline shows.
const SHOWN: usize = 12;

/// Checks the turns of a round of `what`. The error is a [`Violated`].
pub(crate) fn check(what: &str, turns: &[Turn], workload: &Workload) -> Result<(), Failure> {
    let mut turns: Vec<_> = turns.iter().collect();
    turns.sort_unstable_by_key(|turn| turn.granted);
    turns.truncate(CHECKED);
    let history = history(what, &turns, workload);
    // Not every contender has tokens that rise.
    let report = Checker::new().tokens(Grade::None).check(&history)?;
    match report.violations.first() {
        Some(violation) => {
            let timeline = timeline(&history, violation)?;
            Err(Violated { what: what.to_owned(), timeline }.into())
        }
        None => Ok(()),
    }
}

fn history(what: &str, turns: &[&Turn], workload: &Workload) -> History {
    let mut history = History::new(Header::new(what, 0, "bench"));
    for (attempt, turn) in (0..).zip(turns) {
        let client: Arc<str> = format!("worker {}", turn.worker).into();
        let kind = match workload.kind {
            Kind::Permits => Held::Permits { permits: 1, limit: workload.permits() },
            Kind::Readers if turn.shared => Held::Shared,
            _ => Held::Exclusive,
        };
        let name = turn.name.to_string().into();
        let events = [
            (turn.asked, What::Asked { name, kind }),
            (turn.granted, What::Granted { token: turn.token }),
            (turn.releasing, What::Releasing),
            (turn.released, What::Released),
        ];
        let event = |(at, what)| Event { at, client: client.clone(), attempt, what };
        history.events.extend(events.map(event));
    }
    history
}

/// The violation, and the holds of the name at that time.
fn timeline(history: &History, violation: &Violation) -> Result<String, Failure> {
    let (from, until) = violation.span();
    let attempts = history.attempts()?;
    let around = attempts.iter().filter(|attempt| {
        attempt.name == *violation.name() && attempt.last >= from && attempt.asked <= until
    });
    let mut text = format!("{violation}\nall that asked for it at that time:");
    for attempt in around.take(SHOWN) {
        write!(text, "\n  {attempt}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Preset;

    /// Checks turns of workers that ask one after the other, and hold one name at the same time.
    fn checked(preset: Preset, shared: &[bool]) -> Result<(), Failure> {
        let turn = |(worker, shared): (u32, &bool)| {
            let (asked, releasing, released) = (u64::from(worker), 100, 101);
            let (granted, shared) = (50 + asked, *shared);
            Turn { worker, shared, asked, granted, releasing, released, ..Turn::default() }
        };
        let turns: Vec<_> = (0..).zip(shared).map(turn).collect();
        check("memory, hot-name", &turns, &preset.workload(Duration::from_secs(1)))
    }

    #[test]
    fn a_lock_with_two_holders_is_told_with_both() {
        let error = checked(Preset::HotName, &[false, false]).unwrap_err();
        let violated = error.downcast::<Violated>().unwrap().to_string();
        assert!(violated.starts_with("memory, hot-name: the lock does not exclude"), "{violated}");
        assert!(violated.contains("worker 0") && violated.contains("worker 1"), "{violated}");
        checked(Preset::HotName, &[false]).unwrap();
    }

    #[test]
    fn too_many_permits_and_a_reader_beside_a_writer_are_told() {
        for (preset, fits, wrong) in [
            (Preset::Permits, &[true; 8][..], &[true; 9][..]),
            (Preset::Readers, &[true, true][..], &[true, false][..]),
        ] {
            checked(preset, fits).unwrap();
            let error = checked(preset, wrong).unwrap_err();
            assert!(error.is::<Violated>(), "{preset}: {error}");
        }
    }
}
