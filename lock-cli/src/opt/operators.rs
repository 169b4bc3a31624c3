//! The options of `leader`, `ls`, `show`, `watch` and `revoke`, with their help.

use clap::Args;

/// Prints the value of the leader of an election, or exits with 1 if there is no leader.
///
/// Prints the value unchanged, also several lines of it. On a terminal, control characters are
/// shown as escapes such as \n.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  curl \"$(distlock leader db)/health\"                      asks the leader
  distlock leader db --watch                               a line for each change
  distlock leader db --json | jq -r .holder.description    the leader's process")]
pub(crate) struct Leader {
    /// The name of the election.
    pub(crate) name: String,
    /// Prints the leader and its newest value after each change, until a signal ends it.
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Prints objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the names that have a holder or a waiter, and those whose work is done for a period.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock ls               all names in use
  distlock ls jobs/         those that start with jobs/
  distlock ls --json | jq -r '.[] | select(.waiters != []) | .name'")]
pub(crate) struct Ls {
    /// Start of the names. Default: all names.
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Prints an array of objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the holders of a lock, its waiters in order, and whether its work is done for a period.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock show nightly     holders, since when, waiters
  distlock show nightly --json | jq '.holders[0].token'")]
pub(crate) struct Show {
    /// The name of the lock.
    pub(crate) name: String,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the names in use with holders and waiters, once a second.
///
/// A terminal shows them live. Otherwise each change is a line.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock watch            all names, live
  distlock watch jobs/ >> locks.log
  distlock watch nightly --json | jq -r '\"\\(.at) \\(.waiters | length)\"'")]
pub(crate) struct Watch {
    /// Start of the names. Default: all names.
    #[arg(default_value = "", hide_default_value = true, value_name = "NAME|PREFIX")]
    pub(crate) prefix: String,
    /// Prints an object for each change.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes a lock away from a holder, or a place from a waiter; or clears a mark of run --once-per.
///
/// The next waiter gets the lock at once. If the holder does not notice in time, both work at the
/// same time, and only the fencing token stops the first one. `distlock run` kills its command.
/// Exits with 1 if there is no such holder or waiter.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock show nightly               prints the attempts
  distlock revoke nightly 3f2a        the start of an attempt is enough
  distlock revoke nightly 3f2a --yes  for scripts
  distlock revoke nightly --done      the next run --once-per does the work again")]
pub(crate) struct Revoke {
    /// The name of the lock.
    pub(crate) name: String,
    /// The attempt that `distlock show` prints, or its first characters.
    #[arg(required_unless_present = "done")]
    pub(crate) attempt: Option<String>,
    /// Clears the mark that the work is done. Holders and waiters stay. Exits with 1 if there is no
    /// mark.
    #[arg(long, conflicts_with = "attempt")]
    pub(crate) done: bool,
    /// Does not ask for a confirmation.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}
