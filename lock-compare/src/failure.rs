//! Reasons why an experiment has no verdict.

use lock_lab::LabError;

/// An error with a text for people. A [`Missing`] in it becomes the verdict *not run*, any other
/// error becomes *failed*.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A part that this machine or this run lacks.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct Missing {
    /// The missing part: "there is no redis-server".
    pub what: String,
    /// The remedy: "install the package redis-server".
    pub remedy: String,
}

impl Missing {
    /// Names the missing part and the remedy.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// Returns the missing part, if it is the cause of the failure.
pub fn missing(failure: &Failure) -> Option<String> {
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
