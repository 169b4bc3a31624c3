//! Completion in shells: the script of `distlock completions` calls this program for it. The
//! program knows its own words, and asks the store for the names of locks.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    process::ExitCode,
    time::Duration,
};

use clap::{Arg, ArgMatches, Command, CommandFactory};
use clap_complete::{
    Shell,
    engine::{ArgValueCompleter, CompletionCandidate},
    env::{CompleteEnv, EnvCompleter, Shells},
};
use distlock::{Entry, Locks};
use lock_core::StoreUrl;
use tokio::time::timeout;

use crate::{
    arguments,
    choice::{Choice, missing_file},
    escape::Plain,
    opt::Opt,
    print::who,
};

/// Variable that names the shell.
const VARIABLE: &str = "_DISTLOCK_COMPLETE";
/// Variable with the index of the word at the cursor, if the shell also passes the words behind it.
const CURSOR: &str = "_CLAP_COMPLETE_INDEX";
/// Longest request to the store: the user waits at the keyboard.
const LIMIT: Duration = Duration::from_secs(1);
/// Most names that are offered.
const MOST: usize = 500;

/// The script that a shell reads when it starts.
pub(crate) fn script(shell: Shell) -> io::Result<Vec<u8>> {
    if shell == Shell::Bash {
        return Ok(include_str!("complete.bash").replace("VARIABLE", VARIABLE).into_bytes());
    }
    let (shells, name, mut script) = (Shells::builtins(), shell.to_string(), Vec::new());
    let shell: Option<&dyn EnvCompleter> = shells.completer(&name);
    let shell = shell.ok_or_else(|| io::Error::other(format!("no completions for {name}")))?;
    shell.write_registration(VARIABLE, "distlock", "distlock", "distlock", &mut script)?;
    Ok(script)
}

/// Replies to a shell. Returns `None` if no shell asked.
pub(crate) fn answer() -> Option<ExitCode> {
    env::var_os(VARIABLE)?;
    let folder = env::current_dir().ok();
    let complete = CompleteEnv::with_factory(program).var(VARIABLE);
    match complete.try_complete(arguments::given(), folder.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        // The user is typing: no complaint.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The program, with completers for the arguments that the store knows.
fn program() -> Command {
    let completed = |arg: Arg| match arg.get_id().as_str() {
        "name" | "prefix" => arg.add(ArgValueCompleter::new(names)),
        "attempt" => arg.add(ArgValueCompleter::new(attempts)),
        _ => arg,
    };
    Opt::command().mut_subcommands(|command| command.mut_args(completed))
}

/// The names in use that start with what was typed.
fn names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(prefix) = typed.to_str() else { return Vec::new() };
    let names = ask(async |locks, _| locks.names(prefix).await.ok()).unwrap_or_default();
    let names = names.iter().map(ToString::to_string).filter(|name| is_plain(name));
    names.take(MOST).map(CompletionCandidate::new).collect()
}

/// The attempts that hold the lock named before, or wait for it.
fn attempts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(start) = typed.to_str() else { return Vec::new() };
    let queue = ask(async |locks, words| {
        let name: &String = words.subcommand()?.1.try_get_one("name").ok()??;
        locks.inspect(name).await.ok()
    });
    let candidate = |entry: &Entry| {
        let attempt = entry.attempt?.to_string();
        let what = if entry.holds { "holds" } else { "waits" };
        let help = Plain(format!("{what}: {}", who(entry))).to_string();
        attempt
            .starts_with(start)
            .then(|| CompletionCandidate::new(attempt).help(Some(help.into())))
    };
    queue.unwrap_or_default().iter().filter_map(candidate).collect()
}

/// Asks the store of the words before the cursor. Returns `None` on any error.
fn ask<T>(question: impl AsyncFnOnce(&Locks, &ArgMatches) -> Option<T>) -> Option<T> {
    let words = Opt::command().ignore_errors(true).try_get_matches_from(words()).ok()?;
    let stores = words.try_get_many("store").ok()?.into_iter().flatten().cloned();
    let stores: Vec<String> = stores.collect();
    let runtime = crate::runtime().ok()?;
    let answer = async {
        let store = Choice::one(&stores, false).ok()?;
        if missing_file(&StoreUrl::parse(store.url()).ok()?).is_some() {
            // Connecting would create it.
            return None;
        }
        let locks = store.connect().await.ok()?;
        let answer = question(&locks, &words).await;
        // Only if there is time left.
        let _ = locks.close().await;
        answer
    };
    let answer = runtime.block_on(async { timeout(LIMIT, answer).await.ok().flatten() });
    // Does not wait for a hung request.
    runtime.shutdown_background();
    answer
}

/// The words before the cursor, the program's name first.
fn words() -> Vec<OsString> {
    let given = arguments::given().into_iter();
    let mut words: Vec<_> = given.skip_while(|word| word != "--").skip(1).collect();
    let cursor = env::var(CURSOR).ok().and_then(|cursor| cursor.parse().ok());
    words.truncate(cursor.unwrap_or(words.len().saturating_sub(1)));
    words
}

/// Whether every shell takes a name as it is. Other clients choose names, and bash puts them on the
/// command line without quotes: it would run `$(..)`.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    name.chars().all(is_plain) && !name.starts_with(['-', '='])
}
