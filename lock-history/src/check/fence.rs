//! The protected resource accepts no stale write.

use crate::{Attempt, Violation, Write};

/// Finds every write that was accepted after one with a greater token.
pub(super) fn check(attempts: &[&Attempt]) -> std::vec::IntoIter<Violation> {
    let all = attempts.iter().flat_map(|one| one.writes.iter().map(move |write| (write, *one)));
    let mut taken: Vec<(&Write, &Attempt)> = all.filter(|(write, _)| write.accepted).collect();
    taken.sort_by_key(|(write, _)| write.at);
    let (mut newest, mut found) = (0, Vec::new());
    for (write, writer) in taken {
        let Write { at, token, .. } = *write;
        if token < newest {
            found.push(Violation::StaleWrite { at, token, newest, writer: writer.clone() });
        }
        newest = newest.max(token);
    }
    found.into_iter()
}
