//! The command line.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{
    Args, CommandFactory, Parser, Subcommand, ValueHint,
    builder::{PossibleValuesParser, styling::Styles},
    error::{ContextKind, ContextValue, ErrorKind},
};
use clap_complete::{
    Shell,
    engine::{ArgValueCompleter, PathCompleter},
};
use tracing_subscriber::filter::LevelFilter;

use crate::{
    complete, examples,
    policy::OnLost,
    values::{self, Policies},
};

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
    ///
    /// # Errors
    ///
    /// If the command line is wrong, or asks for help.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let opt = Self::try_parse().map_err(hinted)?;
        let before = Before::try_parse().map_or(Vec::new(), |before| before.common.store);
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
    #[cfg(all(feature = "compare", target_os = "linux"))]
    Compare(Compare),
    Completions(Completions),
    #[command(name = "man")]
    ManPages(ManPages),
}

/// Holds a lock while a command runs, and returns the command's exit code.
///
/// The command sees DISTLOCK_NAME, DISTLOCK_TOKEN (the fencing token), DISTLOCK_STORE (the URL
/// without its password) and DISTLOCK_DEADLINE_MS (the end of the lease at its start, in
/// milliseconds on the clock of /proc/uptime). When the command has ended, distlock ends the
/// processes that it left running, and then releases the lock.
#[derive(Args, Debug)]
#[command(after_help = examples::RUN)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    #[command(flatten)]
    pub(crate) losing: Losing,
    /// Holds the lock at least this long, also if the command is shorter. So a host whose clock is
    /// late skips a job that another host has done. A signal that ends the command ends this time,
    /// too.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) at_least: Option<Duration>,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, add = ArgValueCompleter::new(PathCompleter::any()))]
    pub(crate) command: Vec<OsString>,
}

/// Holds a lock without a command, until a signal ends it.
///
/// Prints the line `holding NAME with token TOKEN` when it holds the lock. SIGINT, SIGTERM, SIGHUP
/// and SIGQUIT release the lock, and the exit code is 0. During the wait they end the wait, and the
/// exit code is 128+n. When the lock is lost, distlock says so on stderr and exits with 79.
#[derive(Args, Debug)]
#[command(after_help = examples::HOLD)]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    /// Prints an object with the name and the token.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Waits until it leads, publishes VALUE, and leads until a signal ends it.
///
/// With a command, it leads while the command runs, as `run` does. Without a command, SIGINT and
/// SIGTERM resign, and the exit code is 0.
#[derive(Args, Debug)]
#[command(after_help = examples::ELECT)]
pub(crate) struct Elect {
    /// The name of the election: any text of 1 to 512 bytes.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// Text that all clients can read, such as the address of the leader.
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) losing: Losing,
    /// Prints an object when it leads. Not together with a command.
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, add = ArgValueCompleter::new(PathCompleter::any()))]
    pub(crate) command: Vec<OsString>,
}

/// Prints the value of the leader of an election, or exits with 1 if there is no leader.
///
/// Prints the value unchanged, also several lines of it. On a terminal, control characters are
/// shown as escapes such as \n.
#[derive(Args, Debug)]
#[command(after_help = examples::LEADER)]
pub(crate) struct Leader {
    /// The name of the election.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// Prints every change of the leader or of its value, until a signal ends it.
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Prints objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The lock, its kind, and how to get it.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// The name of the lock: any text of 1 to 512 bytes.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Shares the lock with others that share it, too.
    #[arg(long, conflicts_with = "permits")]
    pub(crate) shared: bool,
    /// Takes one of N permits. All clients of the name must use the same N.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) permits: Option<u32>,
}

/// How to get a lock, and for how long.
#[derive(Args, Debug)]
pub(crate) struct Terms {
    /// Time until the lock ends without a renewal. Default: the default of the store, usually 15s.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Option<Duration>,
    /// Longest wait for the lock. Default: no limit.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,
    /// Does not wait, but exits with 75 if the lock is busy.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Longest hold. At its end, the command is ended as at a loss: SIGTERM comes earlier by the
    /// grace, which is at most a third of this time. Default: no limit.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) max_hold: Option<Duration>,
    /// Prints nothing during the wait.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What to do with the command when the lock is lost.
#[derive(Args, Debug)]
pub(crate) struct Losing {
    /// Ends the command when the lock is about to be lost. term:GRACE sends SIGTERM, and SIGKILL
    /// after GRACE, before another client can get the lock. kill sends SIGKILL alone. ignore lets
    /// the command run. Three times the grace and the margin (a twentieth of the TTL, at least
    /// 50ms) must fit into the TTL. Default: term, with 5s or the longest grace that fits, such as
    /// 4.25s for a TTL of 15s.
    #[arg(long, value_name = "POLICY", default_value = "term", value_parser = Policies)]
    #[arg(hide_possible_values = true)]
    pub(crate) on_lost: OnLost,
}

/// Lists the names that have a holder or a waiter.
#[derive(Args, Debug)]
#[command(after_help = examples::LS)]
pub(crate) struct Ls {
    /// Start of the names. Default: all names.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Prints an array of objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the holders of a lock and its waiters in order.
#[derive(Args, Debug)]
#[command(after_help = examples::SHOW)]
pub(crate) struct Show {
    /// The name of the lock.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the names in use with holders and waiters, once a second.
///
/// A terminal shows them live. Otherwise each change is a line.
#[derive(Args, Debug)]
#[command(after_help = examples::WATCH)]
pub(crate) struct Watch {
    /// Start of the names. Default: all names.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    #[arg(default_value = "", hide_default_value = true, value_name = "NAME|PREFIX")]
    pub(crate) prefix: String,
    /// Prints an object for each change.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes a lock away from a holder, or a place from a waiter.
///
/// The next waiter gets the lock at once. If the holder does not notice in time, both work at the
/// same time, and only the fencing token stops the first one. `distlock run` kills its command.
/// Exits with 1 if there is no such holder or waiter.
#[derive(Args, Debug)]
#[command(after_help = examples::REVOKE)]
pub(crate) struct Revoke {
    /// The name of the lock.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// The attempt that `distlock show` prints, or its first characters.
    #[arg(add = ArgValueCompleter::new(complete::attempts))]
    pub(crate) attempt: String,
    /// Does not ask for a confirmation.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the stores of this program, or the promises of the store of --store.
#[derive(Args, Debug)]
#[command(after_help = examples::STORES)]
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
#[command(after_help = examples::TOKEN_FLOOR)]
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
/// proxy in this process), contention, fencing tokens. They usually take 20 to 40 s per store, and
/// three minutes at the most. All names start with distlock-check and are removed at the end; no
/// other name is touched. Redis keeps the last tokens of about 120 names of each run. Checks that
/// need a server of their own, such as a restart, are left out. Here --store may be given several
/// times. Exits with 80 if a promise was broken.
#[derive(Args, Debug)]
#[command(after_help = examples::CHECK)]
pub(crate) struct Check {
    /// Checks this promise alone. May be given several times.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    pub(crate) property: Vec<String>,
    /// Prints an array with one object for each store.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tests the claims of articles about distributed locks, on private servers.
///
/// 44 claims about Redis, etcd, ZooKeeper, MySQL and others. Each is an experiment on every store
/// that can take part. The command starts the servers that are installed, and stops them at its
/// end. For a missing server it names the package that installs it. With --store, it plays the
/// harmless experiments on a store in use instead. Exits with 1 if an experiment failed.
#[cfg(all(feature = "compare", target_os = "linux"))]
#[derive(Args, Debug)]
#[command(after_help = examples::COMPARE)]
pub(crate) struct Compare {
    /// Plays these claims alone, such as C7,C12.
    #[arg(long, value_name = "CLAIMS", value_delimiter = ',', value_parser = values::claim)]
    pub(crate) claims: Vec<u8>,
    /// Plays on these stores alone, such as redis,etcd.
    #[arg(long, value_name = "STORES", value_delimiter = ',')]
    pub(crate) stores: Vec<lock_compare::Store>,
    /// Repeats less and waits less. All claims take some minutes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Writes the report to this file, as one page of HTML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Prints the report as an object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes what every client did and believed into this folder, as JSON lines. Creates the
    /// folder.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) traces: Option<PathBuf>,
    /// Seed of all random choices. Default: a new one each time, which the report names.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Control run: wrong and right locks are swapped, and each verdict must change.
    #[arg(long)]
    pub(crate) swap: bool,
}

fn names() -> impl Iterator<Item = &'static str> {
    lock_core::properties::all().iter().map(|property| property.name)
}

/// Prints a script by which a shell completes commands, options, and names of locks.
///
/// The script calls `distlock` for each completion. Print it anew with each version of the program,
/// or at each start of the shell. The names are those in use in the store of --store on the command
/// line, or of the usual store. A store that does not answer within a second completes no names.
/// Names that a shell would change are left out.
#[derive(Args, Debug)]
#[command(after_help = examples::COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: Shell,
}

/// Writes the man pages into a folder.
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The folder. It is created if it does not exist.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}
