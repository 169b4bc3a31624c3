//! `distlock hold`: a lock until a signal asks to end.

use std::{io, process::ExitCode};

use serde::Serialize;

use crate::{
    choice::Choice,
    exit::{Failure, by_signal},
    grant::granted,
    held::{self, Place, Words},
    nested,
    on_lost::OnLost,
    opt::{Hold, Wanted},
    print,
    signals::Signals,
    supervise::reap_strays,
};

const HOLDS: Words = Words { saying: "saying that it holds the lock", lost: "the lock was lost" };

#[derive(Serialize)]
struct Holds<'a> {
    name: &'a str,
    token: u64,
}

pub(crate) async fn hold(opt: &Hold, store: &Choice) -> Result<ExitCode, Failure> {
    let Wanted { name, terms, .. } = &opt.wanted;
    nested::refuse_own(store, name, opt.wanted.kind(), opt.wanted.permits, terms)?;
    let mut signals = Signals::listen().map_err(Failure::system("listening for signals"))?;
    reap_strays(None).map_err(Failure::system("listening for signals"))?;
    // There is no command to end, so no grace must fit.
    let place = Place::open(store, terms, OnLost::Ignore, &[]).await?;
    match granted(&opt.wanted, None, &place, &mut signals).await? {
        Ok(guard) => {
            let announced = announce(opt, guard.token().value());
            held::until_asked(&place, guard, announced, &HOLDS, &mut signals).await
        }
        Err(signal) => Ok(by_signal(signal)),
    }
}

fn announce(opt: &Hold, token: u64) -> io::Result<()> {
    let name = &opt.wanted.name;
    match opt.json {
        true => print::json(&Holds { name, token }),
        false => print::line(format_args!("holding {name} with token {token}")),
    }
}
