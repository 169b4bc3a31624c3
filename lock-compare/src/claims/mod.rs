//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a type that plays it. What several of them play is in
//! `contestant`, `printed` and `keys`.

mod c01_mutual_exclusion;
mod c07_bare_delete;
mod c27_same_session_twice;
mod c32_separator;
mod c33_renewal;
mod c35_script_is_no_transaction;
mod c39_errors;
mod c41_cleaned_up;

use crate::Experiment;

/// All experiments, by the numbers of their claims.
pub fn all() -> &'static [&'static dyn Experiment] {
    &[
        &c01_mutual_exclusion::MutualExclusion,
        &c07_bare_delete::BareDelete,
        &c27_same_session_twice::SameSessionTwice,
        &c32_separator::Separator,
        &c33_renewal::Renewal,
        &c35_script_is_no_transaction::ScriptIsNoTransaction,
        &c39_errors::Errors,
        &c41_cleaned_up::CleanedUp,
    ]
}
