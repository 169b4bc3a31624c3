//! The command line, and what `--help` prints: the options of each command stand with its help.

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
use crate::{arguments, values};

/// Runs commands under a distributed lock, and shows locks to operators.
#[derive(Debug, Parser)]
#[command(name = "distlock", version, styles = Styles::styled())]
#[command(after_help = "\
Examples:
  distlock run nightly --no-wait -- ./backup.sh     one host of many makes the backup
  distlock run uploads --permits 3 -- ./upload.sh   at most three at a time
  distlock hold deploy                              no deployment until ctrl-c
  distlock elect scheduler \"$(hostname)\" -- ./scheduler
  distlock show nightly                             holders and waiters

The store is the URL of --store, else of DISTLOCK_STORE, else of a config file (store = \"URL\" in
$XDG_CONFIG_HOME/distlock/config.toml or /etc/distlock/config.toml), else this user's own file
(sqlite:), which --require-store refuses. `distlock stores` lists the URLs. A password in --store is seen by all users
of this machine for a moment: write it into DISTLOCK_STORE or the config file.

Exit codes, besides those of the command that is run:
   64  wrong usage
   69  the store is out of reach, or does not answer
   70  the store sent an unexpected answer
   71  the operating system refused something
   75  the lock is busy (--no-wait)
   77  the store denied access
   78  wrong configuration, a request that this store cannot do, or a wrong number of permits
   79  the lock was lost, and its command ended; or the place in line was lost
   80  a store broke a promise (check)
  124  the wait timed out (--wait)
  126  the command cannot be executed
  127  the command was not found
  128+n  signal n ended the command, or the wait. If it is INT, TERM or HUP, and distlock got it,
         distlock ends by it, too. As the first process of a container it exits with the code

After --busy-code N, N takes the place of 75 and 124.")]
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
        let given = arguments::given();
        let opt = Self::try_parse_from(&given).map_err(hinted)?;
        // Only a line with two of them can have one on each side. Most lines are parsed once.
        let names_store = |word: &&OsString| word.as_encoded_bytes().starts_with(b"--store");
        if given.iter().filter(names_store).count() < 2 {
            return Ok(opt);
        }
        let before = Before::try_parse_from(&given);
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
    #[command(after_help = "\
Examples:
  distlock schema --store postgres: | psql locks
  distlock schema --store mysql: | mysql locks")]
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
