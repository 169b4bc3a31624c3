//! `distlock`: runs commands under a distributed lock, and shows locks to operators.
//!
//! One file per command. `opt` is the command line with its help, `choice` finds the store, `exit`
//! has the exit codes, `grant` and `held` are what `run`, `hold` and `elect` share, and `supervise`
//! runs between `run` and its command.

mod arguments;
#[cfg(all(feature = "bench", target_os = "linux"))]
mod bench;
#[cfg(target_os = "linux")]
mod check;
mod choice;
#[cfg(all(feature = "compare", target_os = "linux"))]
mod compare;
mod complete;
mod config_file;
#[cfg(target_os = "linux")]
mod elect;
mod escape;
mod exit;
mod fit;
#[cfg(target_os = "linux")]
mod grant;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
mod hold;
mod leader;
mod ls;
mod man;
mod marks;
#[cfg(all(feature = "metrics", target_os = "linux"))]
mod metrics;
#[cfg(target_os = "linux")]
mod nested;
mod on_lost;
#[cfg(target_os = "linux")]
mod once;
mod opt;
mod print;
#[cfg(all(any(feature = "bench", feature = "compare"), target_os = "linux"))]
mod progress;
mod revoke;
#[cfg(target_os = "linux")]
mod run;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod schema;
mod show;
#[cfg(target_os = "linux")]
mod signals;
mod stores;
#[cfg(target_os = "linux")]
mod supervise;
mod token_floor;
mod values;
mod variables;
#[cfg(target_os = "linux")]
mod wait;
mod watch;

use std::{
    io::{IsTerminal, stderr},
    process::ExitCode,
};

use clap::error::ErrorKind;
use tokio::runtime::Runtime;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    choice::Choice,
    exit::{Code, Failure},
    opt::{Command, Common, Opt},
};

fn main() -> ExitCode {
    // Before anything else: a process of a fleet that is measured.
    #[cfg(all(feature = "bench", target_os = "linux"))]
    if let Some(code) = lock_bench::child() {
        return code;
    }
    if let Err(failure) = arguments::hide() {
        return failure.report();
    }
    if let Some(code) = complete::answer() {
        return code;
    }
    let opt = match Opt::read() {
        Ok(opt) => opt,
        Err(error) => return refuse(&error),
    };
    log(&opt.common);
    play(&opt).unwrap_or_else(Failure::report)
}

/// Plays the commands that start their runtimes themselves, and all others on one.
fn play(opt: &Opt) -> Result<ExitCode, Failure> {
    match &opt.command {
        #[cfg(all(feature = "bench", target_os = "linux"))]
        Command::Bench(options) => bench::bench(options, &opt.common.store),
        #[cfg(all(feature = "compare", target_os = "linux"))]
        Command::Compare(options) => compare::compare(options, &opt.common.store),
        #[cfg(target_os = "linux")]
        Command::Elect(options) => elect::elect(options, &only(&opt.common)?),
        #[cfg(target_os = "linux")]
        Command::Run(options) => run::run(options, &only(&opt.common)?),
        _ => runtime()?.block_on(dispatch(opt)),
    }
}

/// The store of a command that takes one.
fn only(common: &Common) -> Result<Choice, Failure> {
    Choice::one(&common.store, common.require_store)
}

/// One thread: the command's parent-death signal is bound to the thread that started it.
fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::system("starting a runtime"))
}

async fn dispatch(opt: &Opt) -> Result<ExitCode, Failure> {
    match &opt.command {
        Command::Completions(opt) => {
            let script = complete::script(opt.shell).map_err(Failure::system("completions"))?;
            return Ok(print::bytes(&script).map(|()| ExitCode::SUCCESS)?);
        }
        Command::ManPages(opt) => return man::pages(opt).map(|()| ExitCode::SUCCESS),
        _ => {}
    }
    #[cfg(target_os = "linux")]
    if let Command::Check(check) = &opt.command {
        let Common { store, require_store, .. } = &opt.common;
        return check::check(check, &Choice::all(store, *require_store)?).await;
    }
    let store = only(&opt.common)?;
    match &opt.command {
        Command::Leader(opt) => leader::leader(opt, &store).await?,
        Command::Ls(opt) => ls::ls(opt, &store).await?,
        Command::Show(opt) => show::show(opt, &store).await?,
        Command::Watch(opt) => watch::watch(opt, &store).await?,
        Command::Revoke(opt) => revoke::revoke(opt, &store).await?,
        Command::Stores(opt) => stores::stores(opt, &store).await?,
        Command::TokenFloor(opt) => token_floor::token_floor(opt, &store).await?,
        #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
        Command::Schema => schema::schema(&store)?,
        #[cfg(target_os = "linux")]
        Command::Hold(opt) => return hold::hold(opt, &store).await,
        _ => return Err(Failure::new(Code::System, "this needs Linux")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints help on stdout, and what is wrong with the command line on stderr.
fn refuse(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    match (error.kind(), printed) {
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, Ok(())) => ExitCode::SUCCESS,
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, Err(error)) => {
            Failure::from(error).report()
        }
        // The message may stay unread.
        _ => Code::Usage.into(),
    }
}

/// Logs distlock's own events; all others only as warnings.
fn log(common: &Common) {
    let others = common.log.min(tracing_subscriber::filter::LevelFilter::WARN);
    let filter = Targets::new().with_target("distlock", common.log).with_default(others);
    // A file or a pipe gets no colours; https://no-color.org.
    let colours =
        stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|asked| asked.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(colours);
    tracing_subscriber::registry().with(lines).with(filter).init();
}
