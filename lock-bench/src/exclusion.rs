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

    use async_trait::async_trait;

    use super::*;
    use crate::{
        Preset, Role,
        contender::{Client, Contender, Worker},
        crew::Crew,
        job::Job,
    };

    /// Grants every lock to everybody.
    struct Broken;

    #[async_trait]
    impl Contender for Broken {
        fn name(&self) -> String {
            "broken".into()
        }

        fn role(&self) -> Role {
            Role::Usual
        }

        async fn open(&self, _: &str, _: &Workload) -> Result<Box<dyn Client>, Failure> {
            Ok(Box::new(Self))
        }
    }

    #[async_trait]
    impl Client for Broken {
        async fn worker(&self, _: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
            Ok(Box::new(Self))
        }

        async fn close(self: Box<Self>) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[async_trait]
    impl Worker for Broken {
        async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
            Ok(None)
        }

        async fn release(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    async fn played(contender: &dyn Contender, url: &str, preset: Preset) -> Result<(), Failure> {
        let mut workload = preset.workload(Duration::from_millis(50));
        workload.hold = Duration::from_millis(1);
        let job = Job {
            scheme: "memory".into(),
            url: url.into(),
            contender: contender.name(),
            waits: true,
            prefix: "distlock-bench/exclusion/".into(),
            workers: 0..workload.workers,
            apart: false,
            held: 0,
            workload: workload.clone(),
        };
        let mut crew = Crew::open(contender, job).await?;
        let turns = crew.round().await?;
        assert!(!turns.is_empty());
        check("memory, hot-name", &turns, &workload)
    }

    #[tokio::test]
    async fn a_lock_with_two_holders_is_told_with_both() {
        let error = played(&Broken, "", Preset::HotName).await.unwrap_err();
        let violated = error.downcast::<Violated>().unwrap().to_string();
        assert!(violated.starts_with("memory, hot-name: the lock does not exclude"), "{violated}");
        assert!(violated.matches("worker ").count() >= 4, "{violated}");
    }

    #[tokio::test]
    async fn too_many_permits_and_a_reader_beside_a_writer_are_told() {
        for preset in [Preset::Permits, Preset::Readers] {
            let error = played(&Broken, "", preset).await.unwrap_err();
            assert!(error.is::<Violated>(), "{preset}: {error}");
        }
    }

    #[cfg(feature = "memory")]
    #[tokio::test]
    async fn distlock_excludes() {
        let lock = crate::contender::all::distlock();
        for preset in [Preset::HotName, Preset::Permits, Preset::Readers] {
            played(&*lock, "memory:bench-exclusion", preset).await.unwrap();
        }
    }
}
