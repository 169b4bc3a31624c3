//! A holder that loses its lock knows it before the next grant.

use std::time::Duration;

use crate::{Attempt, Kind, Violation};

/// Finds the next grant after the last belief of each holder that lost its lock. An earlier grant
/// is an overlap, which another rule finds. Permits have no next holder of the same place.
pub(super) fn check(attempts: &[&Attempt]) -> std::vec::IntoIter<Violation> {
    let mut grants: Vec<&Attempt> =
        attempts.iter().filter(|one| one.sure_until().is_some()).copied().collect();
    grants.sort_by_key(|one| one.granted);
    let next = Next::of(&grants);
    let late = attempts.iter().filter_map(|told| {
        let at = told.told()?;
        let believed = told.sure_until().or(told.granted)?;
        let from = grants.partition_point(|grant| grant.granted < Some(believed));
        let mut next_place = next.after(from, told.kind)?;
        if std::ptr::eq(grants[next_place], *told) {
            next_place = next.after(next_place + 1, told.kind)?;
        }
        let next = grants[next_place];
        let granted = next.granted.filter(|granted| *granted < at)?;
        let by = Duration::from_nanos(at - granted);
        Some(Violation::ToldLate { told: (*told).clone(), next: next.clone(), by })
    });
    late.collect::<Vec<_>>().into_iter()
}

/// The place of the next grant of each kind, from each place on.
struct Next(Vec<[Option<usize>; 3]>);

const KINDS: [Kind; 3] =
    [Kind::Exclusive, Kind::Shared, Kind::Permits { permits: 1, limit: u32::MAX }];

impl Next {
    fn of(grants: &[&Attempt]) -> Self {
        let mut next = vec![[None; 3]; grants.len() + 1];
        for place in (0..grants.len()).rev() {
            next[place] = next[place + 1];
            for (index, kind) in KINDS.iter().enumerate() {
                if std::mem::discriminant(kind) == std::mem::discriminant(&grants[place].kind) {
                    next[place][index] = Some(place);
                }
            }
        }
        Self(next)
    }

    /// The first grant from `place` on that excludes a hold of this kind.
    fn after(&self, place: usize, kind: Kind) -> Option<usize> {
        let next = KINDS.iter().zip(self.0[place]).filter(|(other, _)| kind.excludes(**other));
        next.filter_map(|(_, next)| next).min()
    }
}
