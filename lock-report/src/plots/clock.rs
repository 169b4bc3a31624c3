//! The time axis of a timeline.

use crate::{Timeline, words::time};

/// Timelines with at most this many moments are spaced by moments: long waits are shortened.
const MOMENTS: usize = 80;
/// Moments closer than this, in milliseconds, are drawn side by side.
const GRAIN: f64 = 0.02;
/// The smallest share of a gap, in units of the logarithm.
const LEAST: f64 = 0.9;

#[derive(Debug)]
pub(super) struct Clock {
    /// Milliseconds with their places, both increasing.
    stops: Vec<(f64, f64)>,
    /// Whether long gaps are drawn shorter.
    pub(super) is_shortened: bool,
}

impl Clock {
    pub(super) fn of(timeline: &Timeline, (left, right): (f64, f64)) -> Self {
        let moments = moments(timeline);
        let is_shortened = moments.len() <= MOMENTS;
        let gap = |gap: f64| match is_shortened {
            true => LEAST + (1.0 + gap / GRAIN).ln(),
            false => gap,
        };
        let mut stops = vec![(0.0, 0.0)];
        let mut reached = 0.0;
        for pair in moments.windows(2) {
            reached += gap(pair[1] - pair[0]);
            stops.push((pair[1], reached));
        }
        let whole = if reached > 0.0 { reached } else { 1.0 };
        for (_, place) in &mut stops {
            *place = left + *place / whole * (right - left);
        }
        Self { stops, is_shortened }
    }

    pub(super) fn place(&self, ms: f64) -> f64 {
        let after = self.stops.partition_point(|(at, _)| *at < ms);
        let (Some(next), before) = (self.stops.get(after), after.checked_sub(1)) else {
            return self.stops.last().map_or(0.0, |last| last.1);
        };
        let Some((from, start)) = before.and_then(|before| self.stops.get(before)) else {
            return next.1;
        };
        start + (ms - from) / (next.0 - from) * (next.1 - start)
    }

    /// Returns moments with their texts, each `width` wide. The last ones end at the right. They do
    /// not overlap.
    pub(super) fn ticks(&self, width: f64) -> Vec<(f64, String)> {
        let right = self.stops.last().map_or(0.0, |last| last.1);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        let mut free = f64::NEG_INFINITY;
        for (ms, place) in &self.stops {
            let (text, start) = (time(*ms), (place - width / 2.0).min(right - width));
            if start >= free && ticks.last().is_none_or(|(_, said)| *said != text) {
                ticks.push((*place, text));
                free = start + width;
            }
        }
        ticks
    }
}

/// Returns the times of all events, sorted, without duplicates.
fn moments(timeline: &Timeline) -> Vec<f64> {
    let spans = timeline.lanes.iter().flat_map(|lane| &lane.spans);
    let marks = timeline.lanes.iter().flat_map(|lane| &lane.marks);
    let faults = timeline.faults.iter().flat_map(|fault| [Some(fault.from), fault.until]);
    let all = spans.flat_map(|span| [span.from, span.until]).chain(marks.map(|mark| mark.at));
    let all = all.chain(faults.flatten()).chain([0.0, timeline.until]);
    let mut all: Vec<_> = all.filter(|at| at.is_finite() && *at >= 0.0).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|b, a| *b - *a < GRAIN / 10.0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lane, Span, State};

    fn timeline(times: &[f64]) -> Timeline {
        let span = |pair: &[f64]| Span {
            state: State::Holds,
            from: pair[0],
            until: pair[1],
            token: None,
            name: "a".into(),
        };
        let spans = times.windows(2).map(span).collect();
        let lane = Lane { client: "A".into(), spans, marks: Vec::new() };
        let until = times.last().copied().unwrap_or_default();
        Timeline { lanes: vec![lane], until, ..Timeline::default() }
    }

    #[test]
    fn a_long_wait_leaves_room_for_what_follows() {
        let clock = Clock::of(&timeline(&[0.0, 2000.0, 2000.1, 2000.3]), (0.0, 100.0));
        assert!(clock.is_shortened);
        let places = [0.0, 2000.0, 2000.1, 2000.3].map(|ms| clock.place(ms));
        assert_eq!((places[0], places[3]), (0.0, 100.0));
        assert!(places[1] < 75.0 && places[2] - places[1] > 5.0, "{places:?}");
    }

    #[test]
    fn many_moments_are_drawn_to_scale() {
        let times: Vec<_> = (0..200).map(f64::from).collect();
        let clock = Clock::of(&timeline(&times), (0.0, 100.0));
        assert!(!clock.is_shortened);
        assert!((clock.place(99.5) - 50.0).abs() < 1e-6);
    }

    #[test]
    fn an_empty_timeline_has_a_place() {
        let clock = Clock::of(&Timeline::default(), (0.0, 100.0));
        assert_eq!(clock.place(0.0), 0.0);
        assert_eq!(clock.place(5.0), 0.0);
    }
}
