//! Reasons why an experiment has no verdict.

use lock_lab::LabError;

use crate::Store;

/// An error with a text for people. A `Missing` in it becomes the verdict *not run*, any other
/// error becomes *failed*.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A part that this machine or this run lacks.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub(crate) struct Missing {
    /// The missing part: "there is no redis-server".
    pub what: String,
    /// The remedy: "install the package redis-server".
    pub remedy: String,
}

impl Missing {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }

    /// The bare client of a store, in a build without its feature.
    pub(crate) fn client_of(store: Store) -> Self {
        let remedy = format!("build with the feature {}", store.scheme());
        Self::new(format!("{store} is not compiled in"), remedy)
    }
}

/// Returns the missing part, if it is the cause of the failure.
pub(crate) fn missing(failure: &Failure) -> Option<String> {
    if let Some(missing) = failure.downcast_ref::<Missing>() {
        return Some(missing.to_string());
    }
    match failure.downcast_ref::<LabError>() {
        Some(error @ (LabError::Missing { .. } | LabError::NoNetwork { .. })) => {
            Some(error.to_string())
        }
        _ => None,
    }
}
