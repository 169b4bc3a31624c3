//! Why a run has no result.

use std::error::Error;

/// An error of any client, or a sentence.
pub type Failure = Box<dyn Error + Send + Sync>;
