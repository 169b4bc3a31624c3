//! The numbers that a server counts.

use std::{collections::BTreeMap, fmt};

/// Numbers that a server keeps about itself, by name.
///
/// Some only grow (requests), some also fall (open connections). A number that is 0 is not stored.
///
/// ```
/// use lock_lab::Counters;
///
/// let before = Counters::from_iter([("rpc.Txn", 2), ("keys", 1)]);
/// let after = Counters::from_iter([("rpc.Txn", 5), ("keys", 1), ("rpc.Range", 1)]);
/// assert_eq!(after.get("rpc.Txn"), 5);
/// assert_eq!(after.get("rpc.Put"), 0);
/// assert_eq!(after.since(&before).to_string(), "rpc.Range=1 rpc.Txn=3");
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Returns one number, 0 if the server does not have it.
    pub fn get(&self, key: &str) -> u64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Returns the growth since `earlier`, without the numbers that did not grow.
    ///
    /// A restarted server counts from 0 again: compare only within one run of it.
    pub fn since(&self, earlier: &Self) -> Self {
        self.iter().map(|(key, now)| (key, now.saturating_sub(earlier.get(key)))).collect()
    }

    /// Returns all names with their numbers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(key, value)| (key.as_str(), *value))
    }

    /// Returns whether all numbers are 0.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, key: impl Into<String>, value: u64) {
        if value > 0 {
            *self.0.entry(key.into()).or_default() += value;
        }
    }
}

impl<K: Into<String>> FromIterator<(K, u64)> for Counters {
    fn from_iter<I: IntoIterator<Item = (K, u64)>>(pairs: I) -> Self {
        let mut counters = Self::default();
        pairs.into_iter().for_each(|(key, value)| counters.add(key, value));
        counters
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(f, "{gap}{key}={value}")?;
        }
        Ok(())
    }
}
