//! `distlock run`: a command under a lock. How it ends as an exit code stands in `exit`.

use std::process::ExitCode;

use crate::{
    choice::Choice,
    exit::{Failure, by_signal},
    grant::granted,
    held::{self, Place},
    nested,
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
    match granted(&opt.wanted, opt.at_least, &place, &mut signals).await? {
        Ok(guard) => held::run(&place, guard, command, store, opt.at_least, &mut signals).await,
        Err(signal) => Ok(by_signal(signal)),
    }
}
