//! `distlock run`: a command under a lock. How it ends as an exit code stands in `exit`.

use std::process::ExitCode;

use distlock::LockGuard;
use lock_core::Clock;

use crate::{
    choice::Choice,
    exit::{Failure, by_signal},
    grant::granted,
    held::{self, Place},
    nested, once,
    opt::{Run, Wanted},
    runtime,
    signals::Signals,
    supervise::{Ready, reap_strays},
};

pub(crate) fn run(opt: &Run, store: &Choice) -> Result<ExitCode, Failure> {
    let Wanted { name, terms, .. } = &opt.wanted;
    nested::refuse_own(store, name, opt.wanted.kind(), opt.wanted.permits, terms)?;
    match Ready::start(&opt.command)? {
        Ok(command) => runtime()?.block_on(under_lock(opt, store, command)),
        Err(code) => Ok(code),
    }
}

async fn under_lock(opt: &Run, store: &Choice, command: Ready) -> Result<ExitCode, Failure> {
    let listening = || Failure::system("listening for signals");
    reap_strays(Some(command.supervisor())).map_err(listening())?;
    let mut signals = Signals::listen().map_err(listening())?;
    let terms = &opt.wanted.terms;
    let place = Place::open(store, terms, opt.losing.on_lost, &opt.command).await?;
    if let Some(end) = once::before_the_wait(opt, &place, &mut signals).await? {
        return Ok(end);
    }
    let guard = match granted(&opt.wanted, opt.at_least, &place, &mut signals).await? {
        Ok(guard) => guard,
        Err(signal) => return Ok(by_signal(signal)),
    };
    let granted_at = Clock::Boot.now();
    if let Some(end) = once::after_the_grant(opt, &place, &guard, &mut signals).await? {
        return Ok(end);
    }
    let mark = async |guard: &LockGuard, signals: &mut Signals| match opt.once_per {
        Some(period) => once::mark(guard, granted_at, period, signals).await,
        None => true,
    };
    held::run(&place, guard, command, store, opt.at_least, mark, &mut signals).await
}
