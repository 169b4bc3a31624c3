//! The executable properties of lock-core, check by check.

use std::time::Duration;

use lock_core::properties::{self, AsMutex, Check, Guise, Harness, Outcome};

/// Longest time for a check.
const LIMIT: Duration = Duration::from_secs(60);

/// A check, and the kind of lock that acts as an exclusive one.
#[derive(Clone)]
pub struct Named {
    pub name: String,
    check: Check,
    guise: Option<Guise>,
}

/// Every check whose name contains the variable `ONLY`. Those of an exclusive lock also come with
/// each of these kinds that act as one.
pub fn all(guises: &[(&str, Guise)]) -> Vec<Named> {
    let only = std::env::var("ONLY").unwrap_or_default();
    let guises: Vec<_> = guises.iter().map(|(name, guise)| (*name, Some(*guise))).collect();
    let mut all = Vec::new();
    for property in properties::all() {
        let others = if property.of_exclusive { &guises[..] } else { &[] };
        for (guised, guise) in [("lock", None)].iter().chain(others) {
            let named = |check: &Check| Named {
                name: format!("{guised}::{}::{}", property.name, check.name),
                check: *check,
                guise: *guise,
            };
            all.extend(property.checks.iter().map(named).filter(|it| it.name.contains(&only)));
        }
    }
    all
}

impl Named {
    /// # Errors
    ///
    /// A broken promise, with the name of the check.
    pub async fn run(&self, harness: impl Harness + 'static) -> Result<Outcome, String> {
        let harness: Box<dyn Harness> = Box::new(harness);
        let harness = match self.guise {
            Some(guise) => Box::new(AsMutex { harness, guise }),
            None => harness,
        };
        match tokio::time::timeout(LIMIT, self.check.run(&*harness)).await {
            Ok(checked) => checked.map_err(|failure| format!("{}: {failure}", self.name)),
            Err(_) => Err(format!("{}: not done after {LIMIT:?}", self.name)),
        }
    }
}
