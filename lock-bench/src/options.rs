//! What to run.

use std::time::Duration;

use distlock::{STORES, Store};

use crate::{Preset, Workload};

/// The locks that a sweep of TTLs keeps.
const KEPT: u32 = 100;
/// What a sweep can change.
const SWEPT: [&str; 5] = ["names", "workers", "processes", "held", "ttl"];
/// The greatest value of a sweep.
const MOST: f64 = 100_000.0;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Stores in use, by URL; with `lab`, schemes. Empty without `lab`: memory and an SQLite file of
    /// the run's own.
    pub stores: Vec<String>,
    /// Private servers of each store that is installed, or of those that `stores` names.
    pub lab: bool,
    /// The presets. With `custom`, none.
    pub presets: Vec<Preset>,
    /// A load by hand.
    pub custom: Option<Workload>,
    /// How long a round is measured: more than 0.
    pub seconds: Duration,
    /// How many rounds, at least 1. A comparison with another run needs 2, and wants 5.
    pub rounds: u32,
    /// What a sweep changes, as [`Sweep::over`](crate::Sweep::over), with its values: counts of at
    /// least 1, or TTLs of at least 0.001 s.
    pub sweep: Option<(String, Vec<f64>)>,
    /// Without floors and usual ways.
    pub alone: bool,
    /// The command that repeats the run.
    pub command: String,
}

impl Options {
    /// Refuses what cannot be played.
    pub fn check(&self) -> Result<(), String> {
        if let Some(preset) = self.presets.iter().find(|preset| preset.needs_lab() && !self.lab) {
            return Err(format!("{preset} kills processes or servers: add --lab"));
        }
        for store in self.stores.iter().filter(|_| self.lab) {
            // A URL, which may have a password.
            if store.contains(':') {
                let why = "--lab starts private servers, and --store names one in use: give one of \
                           them, or the scheme alone, as in --lab --store redis";
                return Err(why.to_owned());
            }
            known(store)?;
        }
        if self.rounds == 0 || self.seconds.is_zero() {
            let (rounds, seconds) = (self.rounds, self.seconds);
            return Err(format!("{rounds} rounds of {seconds:?}; at least 1, of more than 0 s"));
        }
        self.custom.iter().try_for_each(Workload::check)?;
        let Some((over, values)) = &self.sweep else { return Ok(()) };
        if !SWEPT.contains(&over.as_str()) {
            return Err(format!("unknown sweep {over:?}; known: {}", SWEPT.join(", ")));
        }
        let least = if over == "ttl" { 0.001 } else { 1.0 };
        values.iter().try_for_each(|&value| {
            // Nor is NaN in the range.
            if !(least..=MOST).contains(&value) {
                return Err(format!("{over} = {value}; expected {least} to {MOST}"));
            }
            let load = self.swept(over, value);
            load.check().map_err(|why| format!("{over} = {value}: {why}"))
        })
    }

    /// The loads, each with its preset unless it is a load by hand.
    pub(crate) fn loads(&self) -> Vec<(Option<Preset>, Workload)> {
        let named = |preset: &Preset| (Some(*preset), preset.workload(self.seconds));
        // A sweep is a run of that load by itself.
        let custom = self.custom.clone().filter(|_| self.sweep.is_none());
        self.presets.iter().map(named).chain(custom.map(|load| (None, load))).collect()
    }

    /// The load of one point of a sweep.
    pub(crate) fn swept(&self, over: &str, value: f64) -> Workload {
        let preset = || Preset::Uncontended.workload(self.seconds);
        let mut load = self.custom.clone().unwrap_or_else(preset);
        // A whole number.
        let count = value as u32;
        match over {
            "names" => (load.names, load.workers) = (count, count),
            // Each worker takes one name.
            "workers" => (load.workers, load.names) = (count, load.names.min(count)),
            "processes" => {
                let tasks = if self.custom.is_none() { 4 } else { 1 };
                load.processes = count;
                load.workers = load.workers.max(count * tasks);
            }
            // One more takes turns beside those that are kept.
            "held" => (load.names, load.workers, load.processes) = (count + 1, count + 1, 1),
            _ => {
                load.ttl = Some(Duration::from_secs_f64(value));
                (load.names, load.workers, load.processes) = (KEPT + 1, KEPT + 1, 1);
            }
        }
        load
    }
}

/// The store of a scheme.
pub(crate) fn known(scheme: &str) -> Result<&'static Store, String> {
    Store::of_scheme(scheme).ok_or_else(|| {
        let known: Vec<_> = STORES.iter().map(|store| store.scheme).collect();
        format!("unknown store {scheme:?}; known: {}", known.join(", "))
    })
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// This many rounds of contenders will be played.
    Rounds(usize),
    /// A round begins: its preset, store and contender.
    Begins(&'a str, &'a str, &'a str),
    /// It has ended with this many acquisitions per second.
    Ended(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sweep of this load by hand.
    fn sweep(preset: Preset, over: &str, values: &[f64]) -> Options {
        let seconds = Duration::from_secs(1);
        let custom = Some(preset.workload(seconds));
        let sweep = Some((over.to_owned(), values.to_vec()));
        Options { seconds, custom, sweep, rounds: 3, ..Options::default() }
    }

    #[test]
    fn each_point_changes_what_is_swept() {
        let options = Options { seconds: Duration::from_secs(1), ..Options::default() };
        let load = |over| options.swept(over, 8.0);
        assert_eq!(load("names").workers, 8);
        assert_eq!((load("workers").workers, load("workers").names), (8, 1));
        assert_eq!((load("processes").workers, load("processes").processes), (32, 8));
        assert_eq!(load("held").workers, 9);
        assert_eq!(load("ttl").ttl, Some(Duration::from_secs(8)));
    }

    #[test]
    fn a_sweep_of_workers_has_at_most_a_name_for_each() {
        let workers = sweep(Preset::ManyNames, "workers", &[1.0, 8.0, 100.0]);
        let names = |value| workers.swept("workers", value).names;
        assert_eq!([1.0, 8.0, 100.0].map(names), [1, 8, 64]);
        assert_eq!(workers.check(), Ok(()));
    }

    #[test]
    fn the_refusal_of_a_point_names_it() {
        let refused = sweep(Preset::Readers, "workers", &[5.0, 20.0]).check().unwrap_err();
        assert!(refused.starts_with("workers = 5: --kind readers"), "{refused}");
    }

    #[test]
    fn what_cannot_be_played_is_refused_with_its_value() {
        let run = |change: fn(&mut Options)| {
            let mut options = sweep(Preset::ManyNames, "names", &[1.0]);
            change(&mut options);
            options
        };
        let load = |change: fn(&mut Workload)| {
            let mut options = run(|_| {});
            options.custom.iter_mut().for_each(change);
            options
        };
        let point = |over, value| sweep(Preset::ManyNames, over, &[value]);
        for (options, told) in [
            (run(|run| run.rounds = 0), "0 rounds of 1s"),
            (run(|run| run.seconds = Duration::ZERO), "3 rounds of 0ns"),
            (load(|load| load.workers = 0), "workers = 0"),
            (load(|load| load.names = 0), "names = 0"),
            (load(|load| load.processes = 0), "processes = 0"),
            (load(|load| load.rate = Some(f64::NAN)), "rate = NaN"),
            (point("keys", 1.0), "unknown sweep \"keys\"; known: names, workers"),
            (point("held", 0.0), "held = 0; expected 1 to 100000"),
            (point("ttl", -1.0), "ttl = -1; expected 0.001 to 100000"),
            (point("ttl", f64::NAN), "ttl = NaN"),
            (point("ttl", f64::INFINITY), "ttl = inf"),
        ] {
            let refused = options.check().expect_err(told);
            assert!(refused.contains(told), "{told:?} is not in {refused:?}");
        }
        assert_eq!(run(|_| {}).check(), Ok(()));
    }
}
