//! The cuts between places.

use std::{collections::BTreeSet, fmt::Write as _};

use super::place::Place;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Cuts {
    /// Pairs of a listener and a speaker whose packets it does not get.
    deaf: BTreeSet<(Place, Place)>,
    isolated: BTreeSet<Place>,
    spared: Option<Place>,
}

impl Cuts {
    pub(super) fn deafen(&mut self, listener: Place, speaker: Place) {
        self.deaf.insert((listener, speaker));
    }

    pub(super) fn isolate(&mut self, place: Place) {
        self.isolated.insert(place);
    }

    /// Keeps all ways to and from one place open, at any cut.
    pub(super) fn spare(&mut self, place: Place) {
        self.spared = Some(place);
    }

    pub(super) fn clear(&mut self) {
        self.deaf.clear();
        self.isolated.clear();
    }

    pub(super) fn heal_between(&mut self, a: Place, b: Place) {
        self.deaf.remove(&(a, b));
        self.deaf.remove(&(b, a));
    }

    pub(super) fn rejoin(&mut self, place: Place) {
        self.isolated.remove(&place);
        self.deaf.retain(|(listener, speaker)| *listener != place && *speaker != place);
    }

    /// Returns the whole filter of the router, as `iptables-restore` reads it.
    pub(super) fn rules(&self) -> String {
        let mut rules = String::from("*filter\n:FORWARD ACCEPT [0:0]\n");
        let mut add = |rule: String| {
            let _ = writeln!(rules, "-A FORWARD {rule}");
        };
        if let Some(place) = self.spared {
            add(format!("-s {place} -j ACCEPT"));
            add(format!("-d {place} -j ACCEPT"));
        }
        for place in &self.isolated {
            add(format!("-s {place} -j DROP"));
            add(format!("-d {place} -j DROP"));
        }
        for (listener, speaker) in &self.deaf {
            add(format!("-s {speaker} -d {listener} -j DROP"));
        }
        rules + "COMMIT\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(change: impl FnOnce(&mut Cuts)) -> Vec<String> {
        let mut cuts = Cuts::default();
        change(&mut cuts);
        let lines = cuts.rules();
        lines.lines().filter_map(|line| line.strip_prefix("-A FORWARD ")).map(Into::into).collect()
    }

    #[test]
    fn the_spared_place_comes_before_all_cuts() {
        let [lab, a, b] = [1, 2, 3].map(Place::number);
        let found = rules(|cuts| {
            cuts.isolate(a);
            cuts.deafen(b, a);
            cuts.spare(lab);
        });
        let expected = [
            "-s 10.96.0.1 -j ACCEPT",
            "-d 10.96.0.1 -j ACCEPT",
            "-s 10.96.0.2 -j DROP",
            "-d 10.96.0.2 -j DROP",
            "-s 10.96.0.2 -d 10.96.0.3 -j DROP",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_heal_between_two_leaves_other_cuts() {
        let [a, b, c] = [2, 3, 4].map(Place::number);
        let found = rules(|cuts| {
            cuts.deafen(a, b);
            cuts.deafen(b, a);
            cuts.deafen(c, a);
            cuts.heal_between(b, a);
        });
        assert_eq!(found, ["-s 10.96.0.2 -d 10.96.0.4 -j DROP"]);
    }

    #[test]
    fn a_place_that_rejoins_has_no_cut_left() {
        let [a, b, c] = [2, 3, 4].map(Place::number);
        let found = rules(|cuts| {
            cuts.isolate(a);
            cuts.deafen(a, b);
            cuts.deafen(c, a);
            cuts.deafen(b, c);
            cuts.rejoin(a);
        });
        assert_eq!(found, ["-s 10.96.0.4 -d 10.96.0.3 -j DROP"]);
    }
}
