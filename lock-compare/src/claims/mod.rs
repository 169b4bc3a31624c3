//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a type that plays it. What several of them play is in
//! `contestant`, `printed` and `keys`.

mod c01_mutual_exclusion;
mod c07_bare_delete;

use crate::Experiment;

/// All experiments, by the numbers of their claims.
pub fn all() -> &'static [&'static dyn Experiment] {
    &[&c01_mutual_exclusion::MutualExclusion, &c07_bare_delete::BareDelete]
}
