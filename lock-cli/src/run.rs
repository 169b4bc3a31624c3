//! `distlock run`: a command under a lock. How it ends as an exit code stands in `exit`.

use std::process::ExitCode;

use crate::{
    choice::Choice,
    exit::{Failure, by_signal},
    grant::granted,
    held::{self, Place},
    nested,
    opt::{Run, Wanted},
    signals::Signals,
    supervise::Ready,
};

pub(crate) async fn run(opt: &Run, store: &Choice) -> Result<ExitCode, Failure> {
    let Wanted { name, terms, .. } = &opt.wanted;
    nested::refuse_own(store, name, opt.wanted.kind(), opt.wanted.permits, terms)?;
    let command = Ready::start(&opt.command).map_err(Failure::system("starting the command"))?;
    let mut signals = Signals::listen().map_err(Failure::system("listening for signals"))?;
    let place = Place::open(store, terms, opt.losing.on_lost, &opt.command).await?;
    match granted(&opt.wanted, opt.at_least, &place, &mut signals).await? {
        Ok(guard) => held::run(&place, guard, command, store, opt.at_least, &mut signals).await,
        Err(signal) => Ok(by_signal(signal)),
    }
}
