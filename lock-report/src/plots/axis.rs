//! Maps values to places, and chooses the ticks.

/// Maps a range of values to a range of places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    values: (f64, f64),
    places: (f64, f64),
    log: bool,
}

impl Axis {
    /// An axis for all these values. A linear axis starts at 0, a logarithmic one at the smallest
    /// value above 0.
    pub(super) fn over(
        values: impl Iterator<Item = f64> + Clone,
        places: (f64, f64),
        log: bool,
    ) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let most = finite.clone().fold(0.0, f64::max);
        let least = finite.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let values = match log && least.is_finite() {
            true => (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil())),
            false => (0.0, if most > 0.0 { most * 1.04 } else { 1.0 }),
        };
        let log = log && least.is_finite();
        let values = if values.0 < values.1 { values } else { (values.0, values.0 * 10.0) };
        Self { values, places, log }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let (from, until) = self.values;
        let share = match self.log {
            true => (value.max(from) / from).ln() / (until / from).ln(),
            false => (value - from) / (until - from),
        };
        self.places.0 + share.clamp(0.0, 1.0) * (self.places.1 - self.places.0)
    }

    pub(super) fn ticks(&self) -> Vec<f64> {
        let (from, until) = self.values;
        if self.log {
            let (first, last) = (from.log10().round() as i32, until.log10().round() as i32);
            return (first..=last).map(|power| 10f64.powi(power)).collect();
        }
        let rough = (until - from) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(power * 10.0);
        (0..=5).map(|count| from + f64::from(count) * step).filter(|at| *at <= until).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn ticks_are_round_and_stand_in_the_range() {
        let axis = Axis::over([3.0, 47.0].into_iter(), (0.0, 100.0), false);
        assert_eq!(axis.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let axis = Axis::over([0.3, 47.0].into_iter(), (100.0, 0.0), true);
        assert_eq!(axis.ticks(), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(axis.place(0.1), 100.0);
        assert_eq!(axis.place(100.0), 0.0);
    }

    #[test]
    fn no_value_and_one_value_have_a_place() {
        for values in [vec![], vec![0.0], vec![5.0], vec![f64::NAN]] {
            for log in [false, true] {
                let axis = Axis::over(values.iter().copied(), (0.0, 10.0), log);
                assert!(axis.place(5.0).is_finite(), "{values:?}");
                assert!(!axis.ticks().is_empty(), "{values:?}");
            }
        }
    }
}
