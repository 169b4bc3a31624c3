//! The options of `stores`, `token-floor` and `check`, with their help.

use clap::{Args, builder::PossibleValuesParser};

/// Lists the stores of this program, or the promises of the store of --store.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock stores                                  all stores, with their URLs
  distlock stores --store redis://10.0.0.1         the promises of this one
  distlock stores --json | jq -r '.[] | select(.compiled_in) | .scheme'")]
pub(crate) struct Stores {
    /// Prints an array of objects; with --store, one object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows or raises the floor of a store's fencing tokens.
///
/// All later tokens are above the floor. Raise it in two cases. When a store takes the place of
/// another one: above the tokens of the other store, after its clients were stopped. When a store
/// was restored from a backup or made anew: above the greatest token that the resources have seen.
/// Otherwise the resources refuse the holders of the store.
///
/// A floor that is as high already stays. A holder with a token that is not above the floor loses
/// its lock, as by `revoke`, and a waiter with such a place loses its place. Their next attempt
/// gets a token above it. Another store must exist, must not be the same store, and must have
/// handed out tokens.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock token-floor                             shows the floor
  distlock token-floor --above redis://10.0.0.2    this store takes the place of that one
  distlock token-floor --above 1765000000000000    after a restore: SELECT max(fence) FROM orders")]
pub(crate) struct TokenFloor {
    /// Makes all later tokens greater than this number, or than all tokens of the store with this
    /// URL.
    #[arg(long, value_name = "URL|NUMBER")]
    pub(crate) above: Option<String>,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Checks the promises of a store that is in use.
///
/// The checks are those of distlock's own tests: holders that crash, networks that are cut (by a
/// proxy in this process), contention, fencing tokens. They usually take 30 to 60 s per store, and
/// three minutes at the most. All names start with distlock-check and are removed at the end; no
/// other name is touched. Redis keeps the last tokens of about 200 names of each run. Checks that
/// need a server of their own, such as a restart, are left out. Here --store may be given several
/// times. Exits with 80 if a promise was broken.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock check --store redis://10.0.0.1     all promises, usually in 30 to 60 s
  distlock check --property loss --json       one promise of the usual store
  distlock check --store etcd://10.0.0.1 --store redis://10.0.0.2")]
pub(crate) struct Check {
    /// Checks this promise alone. May be given several times.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    pub(crate) property: Vec<String>,
    /// Prints an array with one object for each store.
    #[arg(long)]
    pub(crate) json: bool,
}

fn names() -> impl Iterator<Item = &'static str> {
    lock_core::properties::all().iter().map(|property| property.name)
}
