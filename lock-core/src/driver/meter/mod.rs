//! What is counted and measured, by the crate `metrics`. Without the feature of that name, nothing.

#[cfg(not(feature = "metrics"))]
mod off;
#[cfg(feature = "metrics")]
mod on;

#[cfg(not(feature = "metrics"))]
pub(crate) use self::off::*;
#[cfg(feature = "metrics")]
pub(crate) use self::on::*;
