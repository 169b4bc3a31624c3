//! What has changed since an earlier run, beyond noise.

use std::fmt;

use crate::{Figures, Ratio, Report, Role, Rounds, Section, compute::quotients, words::ratio};

/// A figure beside its floor, which shares the machine's moods: it changes by 10 %.
const BESIDE_A_FLOOR: f64 = 1.10;
/// A figure by itself: the machine alone may be some percent slower than an hour ago.
const BY_ITSELF: f64 = 1.15;

/// What two runs have in common.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// How many figures both have.
    pub compared: usize,
    /// Those that changed beyond noise.
    pub changes: Vec<Change>,
}

/// A figure that has changed beyond noise.
#[derive(Clone, Debug)]
pub struct Change {
    /// The preset, the store and the figure.
    pub what: String,
    /// The earlier run's.
    pub before: Ratio,
    /// This run's.
    pub now: Ratio,
    /// Whether it is worse now.
    pub regression: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, now] = [self.before, self.now].map(|one| ratio(Some(one)));
        let verdict = if self.regression { "worse" } else { "better" };
        write!(f, "{verdict}: {}: {before} before, {now} now", self.what)
    }
}

/// A figure that is compared: its name, whether it is a rate, and how it is found.
///
/// Of a rate more is better, and its measure is the floor's rate of the same round, where both runs
/// have a floor: then a slower machine is no regression. Times count by themselves on the same
/// machine: a slower network slows the floor as well.
type Figure = (&'static str, bool, fn(&Figures) -> Option<&Rounds>);

static FIGURES: [Figure; 3] = [
    ("acquisitions per second", true, |figures| Some(&figures.rate)),
    ("µs to acquire (p50)", false, |figures| Some(&figures.acquire.p50)),
    ("µs to hand over (p50)", false, |figures| Some(&figures.handover.as_ref()?.p50)),
];

/// Compares distlock's figures with those of an earlier run, by preset and store. A change is
/// beyond noise if the intervals of the rounds do not overlap, and the medians differ by more than
/// 10 % beside a floor, or by more than 15 %. On another machine, only figures beside a floor count.
/// Figures count from two rounds on.
pub fn against(before: &Report, now: &Report) -> Comparison {
    let same_machine = before.machine == now.machine;
    let mut found = Comparison::default();
    for section in &now.sections {
        let old = before.sections.iter().find(|old| is_same_load(old, section));
        let Some(sections) = old.map(|old| [old, section]) else { continue };
        for row in section.rows.iter().filter(|row| row.role == Role::Distlock) {
            for figure @ (name, is_rate, _) in &FIGURES {
                let Some(pair) = pair(figure, sections, &row.store, same_machine) else { continue };
                let what = format!("{} on {}: {name}", section.preset, row.store);
                found.compared += 1;
                found.changes.extend(change(what, *is_rate, &pair));
            }
        }
    }
    found
}

/// Whether two sections differ at most in the length of their rounds.
fn is_same_load(old: &Section, new: &Section) -> bool {
    let mut load = old.workload.clone();
    load.seconds = new.workload.seconds;
    old.preset == new.preset && load == new.workload
}

/// The rounds of a figure in both runs.
struct Pair {
    old: Rounds,
    new: Rounds,
    /// They are parts of the floor's in the same rounds.
    beside_floor: bool,
}

/// `None` if the figure cannot be compared.
fn pair(figure: &Figure, sections: [&Section; 2], store: &str, same_machine: bool) -> Option<Pair> {
    let (_, is_rate, figure_of) = figure;
    let of = |role: Role| {
        let rounds = |section: &Section| {
            let row = section.rows.iter().find(|row| row.store == store && row.role == role)?;
            figure_of(&row.figures).cloned().filter(|rounds| !rounds.0.is_empty())
        };
        let [old, new] = sections.map(rounds);
        old.zip(new)
    };
    let (old, new) = of(Role::Distlock)?;
    let pair = match of(Role::FloorLeast).filter(|_| *is_rate || !same_machine) {
        Some(floors) => {
            let (old, new) = (quotients(&old, &floors.0), quotients(&new, &floors.1));
            Some(Pair { old, new, beside_floor: true })
        }
        None => same_machine.then_some(Pair { old, new, beside_floor: false }),
    };
    // The interval of one round is a point.
    pair.filter(|pair| pair.old.0.len().min(pair.new.0.len()) > 1)
}

/// `None` if it has not changed beyond noise.
fn change(what: String, is_rate: bool, Pair { old, new, beside_floor }: &Pair) -> Option<Change> {
    let (least, unit) = match beside_floor {
        true => (BESIDE_A_FLOOR, ", as a part of the floor's"),
        false => (BY_ITSELF, ""),
    };
    let (before, now) = (Ratio::of(old)?, Ratio::of(new)?);
    let regression = (now.median > before.median) != is_rate;
    let change = Change { what: what + unit, before, now, regression };
    is_beyond_noise(&before, &now, least).then_some(change)
}

fn is_beyond_noise(a: &Ratio, b: &Ratio, least: f64) -> bool {
    let is_apart = a.high < b.low || b.high < a.low;
    is_apart && (a.median > b.median * least || b.median > a.median * least)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Preset, Quantiles, Row};

    /// A generator of numbers from 0 to 1: the same each time.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 40) as f64 / (1u64 << 24) as f64
        }

        /// Rounds around a value, by 5 % to each side.
        fn rounds(&mut self, value: f64, count: usize) -> Rounds {
            Rounds((0..count).map(|_| value * (0.95 + 0.1 * self.next())).collect())
        }
    }

    fn row(role: Role, time: f64, count: usize, noise: &mut Noise) -> Row {
        let acquire = Quantiles { p50: noise.rounds(time, count), ..Quantiles::default() };
        let figures =
            Figures { rate: noise.rounds(1e6 / time, count), acquire, ..Figures::default() };
        Row::new("redis", &format!("{role:?}"), role, figures)
    }

    /// A run in which distlock takes this many microseconds, and the floor half as many on a machine
    /// of this slowness.
    fn run(time: f64, machine: f64, count: usize, noise: &mut Noise) -> Report {
        let rows = vec![
            row(Role::Distlock, time * machine, count, noise),
            row(Role::FloorLeast, 50.0 * machine, count, noise),
        ];
        let section = Section {
            preset: "uncontended".into(),
            models: String::new(),
            workload: Preset::Uncontended.workload(Duration::from_secs(1)),
            rows,
        };
        Report { sections: vec![section], ..Report::default() }
    }

    /// How many of 100 pairs of runs have a regression, and how many a gain.
    fn changes(time: f64, slowness: f64, count: usize, other_machine: bool) -> [usize; 2] {
        let noise = &mut Noise(7);
        let mut found = [0; 2];
        for _ in 0..100 {
            let before = run(100.0, 1.0, count, noise);
            let mut now = run(time, slowness, count, noise);
            if other_machine {
                now.machine.cores += 1;
            }
            let Comparison { compared, changes } = against(&before, &now);
            assert_eq!(compared, 2, "the rate and the time");
            for (found, regression) in found.iter_mut().zip([true, false]) {
                let is_so = |change: &Change| change.regression == regression;
                *found += usize::from(changes.iter().any(is_so));
            }
        }
        found
    }

    #[test]
    fn a_slowdown_of_a_fifth_is_found() {
        for count in [5, 8] {
            let [worse, better] = changes(120.0, 1.0, count, false);
            assert!(worse >= 95 && better == 0, "{worse}, {better} with {count} rounds");
        }
    }

    #[test]
    fn equal_runs_differ_by_noise_alone() {
        for count in [3, 5, 8] {
            let [worse, better] = changes(100.0, 1.0, count, false);
            assert!(worse + better <= 3, "{worse}, {better} with {count} rounds");
        }
    }

    #[test]
    fn figures_of_one_round_are_not_compared() {
        let noise = &mut Noise(7);
        let [one, two] = [1, 2].map(|count| run(100.0, 1.0, count, noise));
        for (before, now, count) in
            [(&one, &one, 0), (&one, &two, 0), (&two, &one, 0), (&two, &two, 2)]
        {
            assert_eq!(against(before, now).compared, count);
        }
    }

    #[test]
    fn a_gain_is_no_regression() {
        let [worse, better] = changes(70.0, 1.0, 5, false);
        assert!(worse == 0 && better >= 95, "{worse}, {better}");
    }

    #[test]
    fn a_slower_machine_is_no_regression() {
        let [worse, better] = changes(100.0, 2.0, 5, true);
        assert!(worse + better <= 3, "{worse}, {better}");
        let [worse, better] = changes(140.0, 0.5, 5, true);
        assert!(worse >= 95 && better == 0, "{worse}, {better}");
    }

    /// A delay in the network slows the floor as well.
    #[test]
    fn a_slower_way_to_the_store_is_a_regression() {
        let [worse, _] = changes(100.0, 1.25, 5, false);
        assert!(worse >= 95, "{worse}");
    }

    #[test]
    fn another_load_is_not_compared() {
        let noise = &mut Noise(7);
        let (before, mut now) = (run(100.0, 1.0, 5, noise), run(200.0, 1.0, 5, noise));
        now.sections[0].workload.workers += 1;
        assert_eq!(against(&before, &now).compared, 0);
    }

    #[test]
    fn a_change_is_a_sentence() {
        let noise = &mut Noise(7);
        let found = against(&run(100.0, 1.0, 5, noise), &run(200.0, 1.0, 5, noise));
        let told = found.changes[0].to_string();
        let begins = "worse: uncontended on redis: acquisitions per second, as a part of the";
        assert!(told.starts_with(begins) && told.contains(" before, "), "{told}");
    }
}
