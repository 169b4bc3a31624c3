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

/// What stands before the command. Of an option that is given before and after it, clap drops the first.
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
    /// What is wrong with it, or the help that it asks for.
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

/// Says where to hold a lock without a command, as `etcdctl lock NAME` does. A script whose command is an
/// empty variable must not get that by accident.
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
    /// The store, such as sqlite:PATH or redis://HOST.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Vec<String>,
    /// What to log on stderr: off, error, warn, info, debug, trace.
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
    /// Prints the SQL that creates the locks' tables, for a database whose user may not do that.
    ///
    /// Of --store, only the scheme counts: `--store postgres:` is enough. Run what it prints as somebody who
    /// may, and grant the locks' user SELECT, INSERT, UPDATE and DELETE on the three tables.
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
/// The command sees DISTLOCK_NAME, DISTLOCK_TOKEN (the fencing token), DISTLOCK_STORE (the URL without
/// its password) and DISTLOCK_DEADLINE_MS (until when the lock was held when it started, on the clock
/// of /proc/uptime). When it has ended, what it left running is ended as well, and then the lock is
/// released.
#[derive(Args, Debug)]
#[command(after_help = examples::RUN)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    #[command(flatten)]
    pub(crate) losing: Losing,
    /// Holds the lock at least so long, so that hosts whose clocks are late skip a short job; a signal that
    /// asks to end ends this, too.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) at_least: Option<Duration>,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, add = ArgValueCompleter::new(PathCompleter::any()))]
    pub(crate) command: Vec<OsString>,
}

/// Holds a lock without a command: prints its name and token, and holds it until a signal asks it to end.
///
/// The line is `holding NAME with token TOKEN`, and comes when the lock is held. SIGINT, SIGTERM, SIGHUP and
/// SIGQUIT release the lock and exit with 0; while it still waits, they end the wait, with 128+n. When the
/// lock is lost, it says so on stderr and exits with 79.
#[derive(Args, Debug)]
#[command(after_help = examples::HOLD)]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    /// Prints an object with the name and the token.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Waits until it leads, says VALUE to everybody, and leads until a signal asks it to end.
///
/// With a command, it leads while the command runs, as `run` does. Without one, SIGINT and SIGTERM
/// resign and exit with 0.
#[derive(Args, Debug)]
#[command(after_help = examples::ELECT)]
pub(crate) struct Elect {
    /// The name of the election: any text of 1 to 512 bytes.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// What the leader says to everybody, such as its address.
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) losing: Losing,
    /// Prints an object when it leads; not with a command.
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, add = ArgValueCompleter::new(PathCompleter::any()))]
    pub(crate) command: Vec<OsString>,
}

/// Prints what the leader of an election says; exits with 1 if nobody leads.
///
/// As it is where stdout is no terminal, also what is more than one line; on a terminal, control
/// characters in it are shown as escapes such as \n.
#[derive(Args, Debug)]
#[command(after_help = examples::LEADER)]
pub(crate) struct Leader {
    /// The name of the election.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// Goes on with every change of the leader or of its value.
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Prints objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which lock, as what, and how to get it.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// The name of the lock: any text of 1 to 512 bytes.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Holds the lock beside others who share it.
    #[arg(long, conflicts_with = "permits")]
    pub(crate) shared: bool,
    /// Takes one of N permits; all who use the name must name the same N.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) permits: Option<u32>,
}

/// How to get a lock, and for how long.
#[derive(Args, Debug)]
pub(crate) struct Terms {
    /// How long the lock outlives its last renewal. Default: the store's, mostly 15s.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for the lock. Default: for ever.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,
    /// Does not wait: exits with 75 if the lock is busy.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Ends the hold, as a loss does, when the lock has been held so long: a command gets SIGTERM the grace
    /// earlier, of at most a third of it. Default: no limit.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) max_hold: Option<Duration>,
    /// Says nothing while it waits.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What to do with the command when the lock is lost.
#[derive(Args, Debug)]
pub(crate) struct Losing {
    /// What to do with the command when the lock is about to be lost: term:GRACE sends SIGTERM, and
    /// SIGKILL GRACE later, before anybody else can get the lock; kill sends only SIGKILL; ignore
    /// lets it run. Three times the grace and the margin (a twentieth of the TTL, at least 50ms) must
    /// fit into the TTL. Default: term, with 5s or the longest grace that fits: 4.25s of 15s.
    #[arg(long, value_name = "POLICY", default_value = "term", value_parser = Policies)]
    #[arg(hide_possible_values = true)]
    pub(crate) on_lost: OnLost,
}

/// Lists the names that somebody holds or waits for.
#[derive(Args, Debug)]
#[command(after_help = examples::LS)]
pub(crate) struct Ls {
    /// Only names that start with this.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Prints an array of objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows who holds a lock and who waits for it.
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

/// Shows the names in use, their holders and waiters, once a second: live on a terminal, else a line for
/// each change.
#[derive(Args, Debug)]
#[command(after_help = examples::WATCH)]
pub(crate) struct Watch {
    /// Only names that start with this.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    #[arg(default_value = "", hide_default_value = true, value_name = "NAME|PREFIX")]
    pub(crate) prefix: String,
    /// Prints an object for each change.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes a lock away from a holder, or a place from a waiter.
///
/// The next in line is served at once: where the holder does not notice in time, the two overlap, and
/// only the fencing token stops the first. `distlock run` kills its command. Exits with 1 if there is
/// no such holder.
#[derive(Args, Debug)]
#[command(after_help = examples::REVOKE)]
pub(crate) struct Revoke {
    /// The name of the lock.
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: String,
    /// The attempt that `distlock show` prints, or the start of it.
    #[arg(add = ArgValueCompleter::new(complete::attempts))]
    pub(crate) attempt: String,
    /// Does not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the stores that this program was built with, or what the one of --store promises.
#[derive(Args, Debug)]
#[command(after_help = examples::STORES)]
pub(crate) struct Stores {
    /// Prints an array of objects; with --store, one object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows what a store's fencing tokens are above, or raises that.
///
/// To be raised when a store takes the place of another one, above the tokens of that one, and when a store
/// was restored from a backup or made anew, above the greatest token that the resources have seen: else they
/// refuse its holders. Stop the clients of the other store first. Only upwards: a floor that is as high stays.
/// Whoever holds a lock with a token that is not above the floor loses it, as by `revoke`, and waiters with
/// such a place lose their place; the next try is above it. Of another store it takes only one that is there,
/// is not this one, and has handed out tokens.
#[derive(Args, Debug)]
#[command(after_help = examples::TOKEN_FLOOR)]
pub(crate) struct TokenFloor {
    /// Makes all later tokens greater than this number, or than all of the store with this URL.
    #[arg(long, value_name = "URL|NUMBER")]
    pub(crate) above: Option<String>,
    /// Prints an object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tries out what a store keeps of what it promises, beside those who use it.
///
/// Holders that crash, networks that are cut (by a proxy in this process), contention, fencing tokens: the
/// properties that distlock's own tests check, usually in 20 to 40 s per store, at most in three minutes. All
/// names are the check's own, starting with distlock-check, and are cleaned up; others are not touched. Redis
/// keeps the last tokens of about 120 names of each run. What needs a server of its own, such as a restart, is
/// not checked. Here --store may be given several times. Exits with 80 if a promise was broken.
#[derive(Args, Debug)]
#[command(after_help = examples::CHECK)]
pub(crate) struct Check {
    /// Checks only this promise; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    pub(crate) property: Vec<String>,
    /// Prints an array with an object for each store.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Puts what articles claim about distributed locks to the test, on private servers.
///
/// 44 claims about Redis, etcd, ZooKeeper, MySQL and others, each an experiment on every store that can
/// take part. The servers are started where they are installed, and end with the command; what is missing
/// is named with what installs it. With --store, what is harmless is tried on a store in use instead.
/// Exits with 1 if an experiment itself failed.
#[cfg(all(feature = "compare", target_os = "linux"))]
#[derive(Args, Debug)]
#[command(after_help = examples::COMPARE)]
pub(crate) struct Compare {
    /// Only these claims, such as C7,C12.
    #[arg(long, value_name = "CLAIMS", value_delimiter = ',', value_parser = values::claim)]
    pub(crate) claims: Vec<u8>,
    /// Only these stores, such as redis,etcd.
    #[arg(long, value_name = "STORES", value_delimiter = ',')]
    pub(crate) stores: Vec<lock_compare::Store>,
    /// Repeats less and waits less: some minutes for all of it.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Writes the report to this file, as one page of HTML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Prints the report as an object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Keeps what every client did and believed in this folder, as JSON lines; it is made if it is not
    /// there.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) traces: Option<PathBuf>,
    /// The seed of everything random. Default: another one each time; the report names it.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// The control: wrong locks and right ones change parts, and each verdict must be another one.
    #[arg(long)]
    pub(crate) swap: bool,
}

fn names() -> impl Iterator<Item = &'static str> {
    lock_core::properties::all().iter().map(|property| property.name)
}

/// Prints a script with which a shell completes commands, options, and names of locks in the store.
///
/// The script calls `distlock` whenever somebody asks for completions, so it is to be made anew when the program
/// is, or by each shell when it starts. Names are those in use in the store that the words name, else in the
/// usual one; a store that does not answer within a second has none, and nor are there names that a shell would
/// not take as they are.
#[derive(Args, Debug)]
#[command(after_help = examples::COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: Shell,
}

/// Writes the man pages into a folder.
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The folder; it is made if it is not there.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}
