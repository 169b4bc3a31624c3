//! Which of several hosts is the one to write to.

use lock_core::keep::errors::reworded;

use crate::{error, layout::dialect::Dialect, wire::failure::Failure};

/// Where a server's data comes from, where the server tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Origin {
    /// The same on all servers of a deployment.
    pub(crate) system: u64,
    /// Rises with each server that takes over.
    pub(crate) timeline: u32,
    /// The numbers of the database and of the entries' table, as read in each message behind a
    /// pooler.
    pub(crate) tables: [u64; 2],
}

impl Origin {
    /// The origin that an answer tells behind a pooler.
    pub(super) fn of([system, timeline, database, table]: [u64; 4]) -> Self {
        let timeline = u32::try_from(timeline).unwrap_or_default();
        Self { system, timeline, tables: [database, table] }
    }
}

/// Checks that exactly one host takes writes, and that it is no former primary. `known` is the
/// origin of the last one; `takers` are the hosts that take writes, by name. The failure is final
/// if a retry changes nothing.
pub(super) fn judge(
    dialect: Dialect,
    known: Option<Origin>,
    takers: &[(&str, Option<Origin>)],
    failed: Vec<(String, Failure)>,
) -> Result<(), Failure> {
    match takers {
        [] => Err(none(dialect, failed)),
        [(name, origin)] => match (known, origin) {
            (Some(known), Some(origin)) if origin.system != known.system => {
                Err(strangers(dialect, name, "the last primary"))
            }
            (Some(known), Some(origin)) if origin.timeline < known.timeline => {
                Err(Failure::down(&format!(
                    "{name} is a former primary that still takes writes (timeline {} after {})",
                    origin.timeline, known.timeline
                )))
            }
            // It continues what the last one has written.
            _ => Ok(()),
        },
        [(one, first), (other, second), ..] => match (first, second) {
            (Some(first), Some(second)) if first.system != second.system => {
                Err(strangers(dialect, one, other))
            }
            _ => Err(Failure::down(&format!(
                "{one} and {other} both take writes: the former primary is not fenced"
            ))),
        },
    }
}

fn strangers(dialect: Dialect, one: &str, other: &str) -> Failure {
    let why = format!(
        "{one} and {other} are not of one deployment (their system identifiers differ): each has \
         locks of its own; name the servers of one deployment"
    );
    Failure::Barred(error::unfit(dialect, &why))
}

/// Why no host takes writes. Only if a retry changes nothing at any of them, the reason is final: one
/// with a wrong login must not end a wait for another one.
fn none(dialect: Dialect, mut failed: Vec<(String, Failure)>) -> Failure {
    if !failed.is_empty() && failed.iter().all(|(_, failure)| failure.is_final()) {
        let (host, failure) = failed.swap_remove(0);
        return at(dialect, &host, failure);
    }
    let reason = |(host, failure): (String, Failure)| {
        format!("{host}: {}", failure.unsent(dialect, "connect"))
    };
    let reasons: Vec<_> = failed.into_iter().map(reason).collect();
    Failure::down(&format!("no host takes writes: {}", reasons.join("; ")))
}

/// The same failure with the host's name.
fn at(dialect: Dialect, host: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Login(why) => Failure::Login(reworded(format!("{host}: {why}"), why)),
        failure => Failure::Barred(error::about(host, failure.unsent(dialect, "connect"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Option<Origin> = Some(Origin { system: 7, timeline: 1, tables: [0; 2] });
    const NEXT: Option<Origin> = Some(Origin { system: 7, timeline: 2, tables: [0; 2] });
    const OTHER: Option<Origin> = Some(Origin { system: 8, timeline: 2, tables: [0; 2] });

    fn verdict(known: Option<Origin>, takers: &[(&str, Option<Origin>)]) -> Result<(), Failure> {
        judge(Dialect::Postgres, known, takers, vec![("c".to_owned(), Failure::down("asleep"))])
    }

    #[test]
    fn one_host_that_goes_on_is_taken() {
        for (known, found) in [(None, FIRST), (FIRST, FIRST), (FIRST, NEXT), (FIRST, None)] {
            assert!(verdict(known, &[("a", found)]).is_ok(), "{known:?} {found:?}");
        }
    }

    #[test]
    fn a_former_primary_and_two_primaries_are_refused_for_now() {
        for (known, takers, word) in [
            (NEXT, vec![("a", FIRST)], "former primary"),
            (FIRST, vec![("a", FIRST), ("b", NEXT)], "not fenced"),
            (None, vec![("a", None), ("b", None)], "not fenced"),
            (None, vec![], "c: "),
        ] {
            let refused = verdict(known, &takers);
            let Err(Failure::Down(why)) = refused else { panic!("{refused:?}") };
            assert!(why.to_string().contains(word), "{why}");
        }
    }

    #[test]
    fn a_host_that_refuses_for_good_is_final_only_if_all_do() {
        let barred = || Failure::Barred(error::unfit(Dialect::Postgres, "a pooler"));
        let none = |failed: Vec<(&str, Failure)>| {
            let failed = failed.into_iter().map(|(name, failure)| (name.to_owned(), failure));
            judge(Dialect::Postgres, None, &[], failed.collect()).unwrap_err()
        };
        let found = none(vec![("a", barred()), ("b", Failure::down("asleep"))]);
        let Failure::Down(why) = found else { panic!("{found:?}") };
        let why = why.to_string();
        assert!(why.contains("a pooler") && why.contains("asleep"), "{why}");
        let found = none(vec![("a", barred()), ("b", barred())]);
        let Failure::Barred(why) = found else { panic!("{found:?}") };
        assert!(why.to_string().contains("a: a pooler"), "{why}");
    }

    #[test]
    fn hosts_of_two_deployments_are_refused_for_good() {
        for (known, takers) in
            [(FIRST, vec![("a", OTHER)]), (None, vec![("a", FIRST), ("b", OTHER)])]
        {
            assert!(matches!(verdict(known, &takers), Err(Failure::Barred(_))), "{takers:?}");
        }
    }
}
