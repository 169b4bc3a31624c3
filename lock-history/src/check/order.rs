//! Later grants have greater tokens.

use crate::{Attempt, Violation};

/// Finds at most three violations per grant: against grants from before its request, against holds
/// that ended before it began, and an equal token.
pub(super) fn check(attempts: &[&Attempt]) -> std::vec::IntoIter<Violation> {
    let with_token = attempts.iter().filter(|one| one.granted.is_some() && one.token.is_some());
    let grants: Vec<&Attempt> = with_token.copied().collect();
    let mut found = Vec::new();
    equal(&grants, &mut found);
    let (mut asked, mut granted) = (grants.clone(), grants.clone());
    asked.sort_by_key(|one| one.asked);
    granted.sort_by_key(|one| one.granted);
    let before = |earlier: &Attempt, later: &Attempt| earlier.granted < Some(later.asked);
    rising(&asked, &granted, before, |_, _| true, &mut found);
    let mut certain: Vec<&Attempt> =
        grants.into_iter().filter(|one| one.sure_until().is_some()).collect();
    certain.sort_by_key(|one| one.granted);
    let mut ending = certain.clone();
    ending.sort_by_key(|one| one.sure_until());
    // The first pass has found the others.
    let before = |earlier: &Attempt, later: &Attempt| earlier.sure_until() <= later.granted;
    let excludes = |earlier: &Attempt, later: &Attempt| {
        earlier.kind.excludes(later.kind) && earlier.granted >= Some(later.asked)
    };
    rising(&certain, &ending, before, excludes, &mut found);
    found.into_iter()
}

/// Compares each of `later` with the greatest token among all of `earlier` that come before it.
fn rising(
    later: &[&Attempt],
    earlier: &[&Attempt],
    before: impl Fn(&Attempt, &Attempt) -> bool,
    counts: impl Fn(&Attempt, &Attempt) -> bool,
    found: &mut Vec<Violation>,
) {
    let mut candidates = earlier.iter().peekable();
    // The greatest of each kind: one kind may exclude what another does not.
    let mut greatest: [Option<&Attempt>; 3] = [None; 3];
    for one in later {
        while let Some(candidate) = candidates.next_if(|candidate| before(candidate, one)) {
            let place = &mut greatest[class(candidate)];
            if place.is_none_or(|greatest| greatest.token < candidate.token) {
                *place = Some(candidate);
            }
        }
        let greater = greatest
            .iter()
            .flatten()
            .filter(|greatest| greatest.token > one.token && counts(greatest, one));
        if let Some(earlier) = greater.max_by_key(|greatest| greatest.token) {
            found.push(order(earlier, one));
        }
    }
}

fn class(attempt: &Attempt) -> usize {
    match attempt.kind {
        crate::Kind::Exclusive => 0,
        crate::Kind::Shared => 1,
        crate::Kind::Permits { .. } => 2,
    }
}

fn equal(grants: &[&Attempt], found: &mut Vec<Violation>) {
    let mut by_token = grants.to_vec();
    by_token.sort_by_key(|one| (one.token, one.granted));
    let pairs = by_token.windows(2).filter(|pair| pair[0].token == pair[1].token);
    found.extend(pairs.map(|pair| order(pair[0], pair[1])));
}

fn order(earlier: &Attempt, later: &Attempt) -> Violation {
    Violation::TokenOrder { earlier: earlier.clone(), later: later.clone() }
}
