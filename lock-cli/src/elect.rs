//! `distlock elect`: leads an election, and announces it.

use std::{future::Future, io, pin::Pin, process::ExitCode};

use distlock::{Leadership, LockKind, Result as LockResult};
use serde::Serialize;

use crate::{
    choice::Choice,
    exit::{Failure, by_signal},
    held::{self, Place, Words},
    nested,
    opt::Elect,
    print, runtime,
    signals::Signals,
    supervise::{Ready, reap_strays},
};

type Granting = Pin<Box<dyn Future<Output = LockResult<Option<Leadership>>>>>;

const LEADS: Words = Words { saying: "saying that it leads", lost: "not the leader any more" };

#[derive(Serialize)]
struct Leads<'a> {
    name: &'a str,
    value: &'a str,
    token: u64,
}

pub(crate) fn elect(opt: &Elect, store: &Choice) -> Result<ExitCode, Failure> {
    nested::refuse_own(store, &opt.name, LockKind::Exclusive, None, &opt.terms)?;
    let started = (!opt.command.is_empty()).then(|| Ready::start(&opt.command)).transpose()?;
    match started.transpose() {
        Ok(command) => runtime()?.block_on(lead(opt, store, command)),
        Err(code) => Ok(code),
    }
}

async fn lead(opt: &Elect, store: &Choice, command: Option<Ready>) -> Result<ExitCode, Failure> {
    let listening = || Failure::system("listening for signals");
    reap_strays(command.as_ref().map(Ready::supervisor)).map_err(listening())?;
    let mut signals = Signals::listen().map_err(listening())?;
    let place = Place::open(store, &opt.terms, opt.losing.on_lost, &opt.command).await?;
    let grant = campaign(opt, &place)?;
    let busy = format!("another client leads {}", opt.name);
    let waited = place.wait(&opt.name, &opt.terms, &busy, &mut signals, grant).await?;
    let leadership = match waited {
        Ok(leadership) => leadership,
        Err(signal) => return Ok(by_signal(signal)),
    };
    match command {
        None => {
            let announced = announce(opt, leadership.token().value());
            held::until_asked(&place, leadership, announced, &LEADS, &mut signals).await
        }
        Some(command) => {
            let unmarked = async |_: &Leadership, _: &mut Signals| true;
            held::run(&place, leadership, command, store, None, unmarked, &mut signals).await
        }
    }
}

fn campaign(opt: &Elect, place: &Place) -> Result<Granting, Failure> {
    let mut election = place.locks.election(&opt.name)?.ttl(place.ttl).holder(&place.me);
    #[cfg(feature = "metrics")]
    {
        election = election.name_in_metrics();
    }
    if let Some(limit) = opt.terms.max_hold {
        election = election.max_hold(limit);
    }
    if let Some(limit) = opt.terms.wait {
        election = election.wait(limit);
    }
    let value = opt.value.clone();
    Ok(match opt.terms.no_wait {
        true => Box::pin(async move { election.try_campaign(value).await }),
        false => Box::pin(async move { election.campaign(value).await.map(Some) }),
    })
}

fn announce(opt: &Elect, token: u64) -> io::Result<()> {
    match opt.json {
        true => print::json(&Leads { name: &opt.name, value: &opt.value, token }),
        false => print::line(format_args!("leading {} with token {token}", opt.name)),
    }
}
