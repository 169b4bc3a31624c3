//! From the turns of a round to its figures.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::{
    Fairness, Figures, Kind, Quantiles, Ratio, Role, Rounds, Row, Turn, Workload, clock::SECOND,
    round::Round,
};

const MICRO: f64 = 1000.0;

/// Adds a round to the figures.
pub(crate) fn add(figures: &mut Figures, round: &Round, workload: &Workload) {
    let turns = &round.turns;
    // A round without a grant has no share of anything.
    let each = |sum: f64| sum / turns.len().max(1) as f64;
    figures.rate.0.push(rate(turns));
    let waits = times(turns.iter().map(|turn| turn.granted.saturating_sub(turn.scheduled)));
    push(&mut figures.acquire, &waits);
    let (names, mut handovers) = (by_name(turns), Vec::new());
    names.values().for_each(|turns| handovers.extend(self::handovers(turns)));
    if !handovers.is_empty() {
        push(figures.handover.get_or_insert_default(), &times(handovers.into_iter()));
    }
    // Contenders that cannot wait have more names than the load.
    if workload.names < workload.workers && names.len() <= workload.names as usize {
        let fairness = figures.fairness.get_or_insert_default();
        shares(fairness, turns, workload.workers);
        let overtook = names.values().map(|turns| overtook(turns, workload.kind)).sum::<usize>();
        fairness.out_of_order.0.push(100.0 * each(overtook as f64));
        fairness.spread.0.push(spread(&waits));
    }
    figures.client_cpu.0.push(each(round.client_cpu.as_nanos() as f64 / MICRO));
    let server = round.server_cpu.map(|used| each(used.as_nanos() as f64 / MICRO));
    let (counted, standing) = (round.counted, round.standing);
    for (place, value) in [
        (&mut figures.server_cpu, server),
        (&mut figures.requests, counted.requests.map(|count| each(count as f64))),
        (&mut figures.wakes, counted.wakes.map(|count| each(count as f64))),
        (&mut figures.connections, standing.connections.map(|count| count as f64)),
        (&mut figures.watches, standing.watches.map(|count| count as f64)),
    ] {
        if let Some(value) = value {
            place.get_or_insert_default().0.push(value);
        }
    }
}

/// Adds one time per round, in nanoseconds: what a killed holder or leader costs.
pub(crate) fn add_time(figures: &mut Figures, nanos: u64) {
    figures.rate.0.push(SECOND as f64 / nanos.max(1) as f64);
    let time = times([nanos].into_iter());
    push(&mut figures.acquire, &time);
    push(figures.handover.get_or_insert_default(), &time);
}

/// Acquisitions per second.
pub(crate) fn rate(turns: &[Turn]) -> f64 {
    let from = turns.iter().map(|turn| turn.scheduled).min().unwrap_or_default();
    let until = turns.iter().map(|turn| turn.released).max().unwrap_or_default();
    turns.len() as f64 * SECOND as f64 / until.saturating_sub(from).max(1) as f64
}

/// How each figure of one contender is to another's of the same round.
pub(crate) fn quotients(figures: &Rounds, others: &Rounds) -> Rounds {
    let pairs = figures.0.iter().zip(&others.0).filter(|(_, other)| **other > 0.0);
    Rounds(pairs.map(|(figure, other)| figure / other).collect())
}

/// Sets the ratio of each row to distlock's on the same store, which stands before it.
pub(crate) fn set_ratios(rows: &mut [Row]) {
    for place in 1..rows.len() {
        let (before, [row, ..]) = rows.split_at_mut(place) else { return };
        let ours =
            before.iter().find(|ours| ours.store == row.store && ours.role == Role::Distlock);
        row.ratio =
            ours.and_then(|ours| Ratio::of(&quotients(&row.figures.rate, &ours.figures.rate)));
    }
}

/// The exponent of the power of `x` that fits `y` best: the slope of a line in logarithms. `None`
/// without two different points.
pub(crate) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let usable = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let logs: Vec<_> = usable.map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let middle = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (middle(|point| point.0), middle(|point| point.1));
    let spread: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    let common: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 0.0).then(|| common / spread)
}

fn times(nanos: impl Iterator<Item = u64>) -> Histogram<u64> {
    let mut times = Histogram::new(3).expect("three digits are allowed");
    // Grows with its values, which `saturating_record` does not.
    nanos.for_each(|nanos| times += nanos);
    times
}

fn push(quantiles: &mut Quantiles, times: &Histogram<u64>) {
    let micros = |nanos: u64| nanos as f64 / MICRO;
    quantiles.p50.0.push(micros(times.value_at_quantile(0.5)));
    quantiles.p99.0.push(micros(times.value_at_quantile(0.99)));
    quantiles.p999.0.push(micros(times.value_at_quantile(0.999)));
    quantiles.max.0.push(micros(times.max()));
}

fn spread(waits: &Histogram<u64>) -> f64 {
    waits.value_at_quantile(0.99) as f64 / waits.value_at_quantile(0.5).max(1) as f64
}

/// The turns of each name, in their order.
fn by_name(turns: &[Turn]) -> BTreeMap<u32, Vec<&Turn>> {
    let mut names: BTreeMap<u32, Vec<&Turn>> = BTreeMap::new();
    for turn in turns {
        names.entry(turn.name).or_default().push(turn);
    }
    names
}

/// The time from each release to the grant that it made possible: the worker had asked before, and
/// one of the two excludes the other.
fn handovers(granted: &[&Turn]) -> Vec<u64> {
    let mut released = granted.to_vec();
    released.sort_by_key(|turn| turn.releasing);
    let (mut next, mut exclusive, mut shared) = (0, None, None);
    let mut found = Vec::new();
    for turn in granted {
        while next < released.len() && released[next].releasing < turn.granted {
            let last = if released[next].shared { &mut shared } else { &mut exclusive };
            *last = Some(released[next].releasing);
            next += 1;
        }
        let last = if turn.shared { exclusive } else { exclusive.max(shared) };
        found.extend(last.filter(|at| turn.asked < *at).map(|at| turn.granted - at));
    }
    found
}

/// How many grants overtook a worker: it had asked before a grant, the one that overtook it asked
/// after that grant. Readers that enter together are not in any order.
fn overtook(granted: &[&Turn], kind: Kind) -> usize {
    // The earliest request among all grants from each place on: of writers, and of all.
    let mut earliest = vec![(u64::MAX, u64::MAX); granted.len() + 1];
    for place in (0..granted.len()).rev() {
        let (writers, all) = earliest[place + 1];
        let asked = granted[place].asked;
        let writers = if granted[place].shared { writers } else { writers.min(asked) };
        earliest[place] = (writers, all.min(asked));
    }
    let is_overtaking = |place: &usize| {
        let turn = granted[*place];
        let (writers, all) = earliest[place + 1];
        let waiting = if turn.shared && kind == Kind::Readers { writers } else { all };
        // Cheap, and true of no grant of a fair lock.
        if waiting >= turn.asked {
            return false;
        }
        let before = granted.partition_point(|other| other.granted < turn.asked);
        before > 0 && waiting < granted[before - 1].granted
    };
    (0..granted.len()).filter(is_overtaking).count()
}

fn shares(fairness: &mut Fairness, turns: &[Turn], workers: u32) {
    let mut counts = vec![0_u64; workers as usize];
    for turn in turns {
        if let Some(count) = counts.get_mut(turn.worker as usize) {
            *count += 1;
        }
    }
    let even = turns.len().max(1) as f64 / f64::from(workers);
    let share = |count: Option<&u64>| count.map_or(0.0, |count| *count as f64 / even);
    fairness.least.0.push(share(counts.iter().min()));
    fairness.most.0.push(share(counts.iter().max()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn of an exclusive lock that is held for 5.
    fn turn(worker: u32, asked: u64, granted: u64) -> Turn {
        let (scheduled, releasing, released) = (asked, granted + 5, granted + 6);
        Turn { worker, scheduled, asked, granted, releasing, released, ..Turn::default() }
    }

    fn refs(turns: &[Turn]) -> Vec<&Turn> {
        turns.iter().collect()
    }

    #[test]
    fn a_handover_needs_a_worker_that_had_asked_before_the_release() {
        // The second waits when the first releases at 15; the third asks later.
        let turns = [turn(0, 1, 10), turn(1, 2, 18), turn(2, 30, 32)];
        assert_eq!(handovers(&refs(&turns)), [3]);
    }

    #[test]
    fn readers_follow_a_writer_and_no_reader() {
        let mut turns = [turn(0, 1, 10), turn(1, 2, 18), turn(2, 3, 19), turn(3, 4, 26)];
        turns[1].shared = true;
        turns[2].shared = true;
        // Two readers after the writer's release at 15, a writer after the last reader's at 24.
        assert_eq!(handovers(&refs(&turns)), [3, 4, 2]);
    }

    #[test]
    fn who_asked_after_the_last_grant_overtakes_those_that_waited_before_it() {
        let fair = [turn(0, 1, 10), turn(1, 2, 20), turn(2, 3, 30), turn(0, 22, 40)];
        assert_eq!(overtook(&refs(&fair), Kind::Exclusive), 0);
        // The releaser asks at 16, and is granted before the worker that has asked at 2.
        let unfair = [turn(0, 1, 10), turn(0, 16, 20), turn(1, 2, 30)];
        assert_eq!(overtook(&refs(&unfair), Kind::Exclusive), 1);
        // Both asked between two grants: their order at the store is not known.
        let close = [turn(0, 1, 10), turn(1, 3, 20), turn(2, 2, 30)];
        assert_eq!(overtook(&refs(&close), Kind::Exclusive), 0);
    }

    #[test]
    fn shares_are_parts_of_an_even_share() {
        let mut fairness = Fairness::default();
        let turns = [turn(0, 1, 2), turn(0, 3, 4), turn(0, 5, 6), turn(1, 7, 8)];
        shares(&mut fairness, &turns, 2);
        assert_eq!((fairness.least.0[0], fairness.most.0[0]), (0.5, 1.5));
    }

    #[test]
    fn a_power_is_found_again() {
        let points = [1.0, 10.0, 100.0].map(|x: f64| (x, 3.0 * x.powf(1.5)));
        assert!((exponent(&points).unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(exponent(&[(10.0, 1.0), (10.0, 2.0)]), None);
        assert_eq!(exponent(&[]), None);
    }

    #[test]
    fn rates_are_divided_round_by_round() {
        let of = |values: &[f64]| Rounds(values.to_vec());
        assert_eq!(quotients(&of(&[2.0, 9.0]), &of(&[1.0, 3.0])), of(&[2.0, 3.0]));
    }

    #[test]
    fn a_round_without_a_grant_has_finite_figures() {
        let workload = crate::Preset::HotName.workload(std::time::Duration::from_secs(1));
        let mut figures = Figures::default();
        add(&mut figures, &Round::default(), &workload);
        assert_eq!((figures.rate.0[0], figures.acquire.max.0[0]), (0.0, 0.0));
        assert!(figures.fairness.unwrap().spread.0[0].is_finite());
    }

    #[test]
    fn only_names_that_are_shared_have_shares() {
        let mut alone = turn(1, 1, 2);
        alone.name = 1;
        for (preset, turns, is_shared) in [
            (crate::Preset::HotName, vec![turn(0, 1, 2), turn(1, 3, 4)], true),
            // A floor.
            (crate::Preset::HotName, vec![turn(0, 1, 2), alone], false),
            // Most workers had no turn within the round.
            (crate::Preset::ManyNames, vec![turn(0, 1, 2)], false),
        ] {
            let workload = preset.workload(std::time::Duration::from_secs(1));
            let mut figures = Figures::default();
            add(&mut figures, &Round { turns, ..Round::default() }, &workload);
            assert_eq!(figures.fairness.is_some(), is_shared, "{preset}");
        }
    }
}
