//! Why an experiment has no verdict.

use lock_lab::LabError;

/// What went wrong, for people. A [`Missing`] in it becomes the verdict *not run*, anything else
/// *failed*.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Something that this machine, or this run, does not have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct Missing {
    /// What is missing: "there is no redis-server".
    pub what: String,
    /// What to do about it: "install the package redis-server".
    pub remedy: String,
}

impl Missing {
    /// Says what is missing and what helps.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// What is missing, if that is why something failed.
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
