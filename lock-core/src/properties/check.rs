//! A promise and its checks.

use super::{Checked, Harness, NotHere, Outcome, outcome::Done, scene::needs_kind};
use crate::{BoxFuture, LockKind};

/// A promise and the checks for it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Property {
    /// Its name, as in the contract of [`DistributedLock`](crate::DistributedLock).
    pub name: &'static str,
    /// The promise in a few words, for operators of a store.
    pub words: &'static str,
    /// Whether its checks are those of an exclusive lock. Other locks that act as one can be
    /// checked, too: [`AsMutex`](super::AsMutex).
    pub of_exclusive: bool,
    /// The checks.
    pub checks: &'static [Check],
}

type Run = for<'a> fn(&'a dyn Harness) -> BoxFuture<'a, Done>;

/// One scenario.
#[derive(Clone, Copy)]
pub struct Check {
    /// The scenario.
    pub name: &'static str,
    pub(super) run: Run,
}

impl Check {
    /// Plays the scenario.
    ///
    /// # Errors
    ///
    /// The store's behaviour that breaks the promise.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the scenario half-way. Use the harness for no other check then.
    pub fn run<'a>(&self, harness: &'a dyn Harness) -> BoxFuture<'a, Checked> {
        let run = self.run;
        Box::pin(async move {
            let checked = async {
                let required = harness.guise().requires();
                if required != LockKind::Exclusive {
                    needs_kind(&*harness.client().await?, required)?;
                }
                run(harness).await
            };
            match checked.await {
                Ok(()) => Ok(Outcome::Kept),
                Err(failure) => {
                    failure.downcast::<NotHere>().map(|why| Outcome::Skipped(why.to_string()))
                }
            }
        })
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Lists a property's checks by their functions' names.
macro_rules! property {
    ($($check:ident),+ $(,)?) => {
        pub(super) const CHECKS: &[super::Check] = &[$(super::Check {
            name: stringify!($check),
            run: |harness| Box::pin($check(harness)),
        }),+];
    };
}
pub(super) use property;
