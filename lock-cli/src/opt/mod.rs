//! The command line.

#[cfg(all(feature = "bench", target_os = "linux"))]
mod bench;
#[cfg(all(feature = "compare", target_os = "linux"))]
mod compare;
mod holding;
mod operators;
#[cfg(test)]
mod pages;
mod program;
mod store;

use std::ffi::OsString;

use clap::{
    Args, CommandFactory, Parser, Subcommand,
    builder::styling::Styles,
    error::{ContextKind, ContextValue, ErrorKind},
};
use tracing_subscriber::filter::LevelFilter;

#[cfg(all(feature = "bench", target_os = "linux"))]
pub(crate) use self::bench::{Bench, Custom};
#[cfg(all(feature = "compare", target_os = "linux"))]
pub(crate) use self::compare::Compare;
pub(crate) use self::{
    holding::{Elect, Hold, Run, Terms, Wanted},
    operators::{Leader, Ls, Revoke, Show, Watch},
    program::{Completions, ManPages},
    store::{Check, Stores, TokenFloor},
};
use crate::{arguments, examples, values};

/// Runs commands under a distributed lock, and shows locks to operators.
#[derive(Debug, Parser)]
#[command(name = "distlock", version, after_help = examples::DISTLOCK, styles = Styles::styled())]
pub(crate) struct Opt {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options before the command. If an option is given before and after it, clap drops the first.
#[derive(Parser)]
struct Before {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    _command: Any,
}

#[derive(Subcommand)]
enum Any {
    #[command(external_subcommand)]
    Any(#[allow(dead_code, reason = "only what stands before it counts")] Vec<OsString>),
}

impl Opt {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let opt = Self::try_parse_from(arguments::given()).map_err(hinted)?;
        let before = Before::try_parse_from(arguments::given());
        let before = before.map_or(Vec::new(), |before| before.common.store);
        if before.is_empty() || before == opt.common.store {
            return Ok(opt);
        }
        let wrong = "--store stands before and after the command; give all of them in one place";
        Err(Self::command().error(ErrorKind::ArgumentConflict, wrong))
    }
}

/// Adds the command that holds a lock without a command, as `etcdctl lock NAME` does. A script
/// whose command is an empty variable must not get that by accident.
fn hinted(mut error: clap::Error) -> clap::Error {
    let missing = error
        .get(ContextKind::InvalidArg)
        .is_some_and(|missing| missing.to_string().contains("<COMMAND>"));
    if error.kind() == ErrorKind::MissingRequiredArgument && missing {
        let hint = "`distlock hold NAME` holds a lock without a command".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    }
    error
}

#[derive(Args, Debug)]
pub(crate) struct Common {
    /// URL of the store, such as sqlite:PATH or redis://HOST.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Vec<String>,
    /// Refuses to use this user's own file when no store is named.
    #[arg(long, global = true)]
    pub(crate) require_store: bool,
    /// Logs on stderr: off, error, warn, info, debug, trace.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "off")]
    #[arg(value_parser = values::levels(), hide_possible_values = true)]
    pub(crate) log: LevelFilter,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Hold(Hold),
    Elect(Elect),
    Leader(Leader),
    Ls(Ls),
    Show(Show),
    Watch(Watch),
    Revoke(Revoke),
    Stores(Stores),
    TokenFloor(TokenFloor),
    /// Prints the SQL that creates the tables of the locks.
    ///
    /// For a database whose user may not create tables. Run the SQL as a user that may, and grant
    /// the user of the locks SELECT, INSERT, UPDATE and DELETE on the three tables. Only the scheme
    /// of --store counts: `--store postgres:` is enough.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    #[command(after_help = examples::SCHEMA)]
    Schema,
    Check(Check),
    #[cfg(all(feature = "bench", target_os = "linux"))]
    Bench(Bench),
    #[cfg(all(feature = "compare", target_os = "linux"))]
    Compare(Compare),
    Completions(Completions),
    #[command(name = "man")]
    ManPages(ManPages),
}
