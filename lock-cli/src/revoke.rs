//! `distlock revoke`: takes a lock away.

use std::io::{self, BufRead, IsTerminal, Write};

use distlock::Entry;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    choice::Choice,
    escape::Plain,
    exit::{Code, Failure},
    opt::Revoke,
    print::{self, who},
};

#[derive(Serialize)]
struct Revoked<'a> {
    name: &'a str,
    attempt: Uuid,
    revoked: bool,
}

pub(crate) async fn revoke(opt: &Revoke, store: &Choice) -> Result<(), Failure> {
    if !opt.yes && !io::stdin().is_terminal() {
        return Err(Failure::new(
            Code::Usage,
            "there is no terminal to ask on: revoke needs --yes",
        ));
    }
    let locks = store.connect().await?;
    let queue = locks.inspect(&opt.name).await?;
    let (attempt, entry) = find(&queue, opt)?;
    if !opt.yes && !confirmed(&opt.name, entry).map_err(Failure::system("asking"))? {
        return Err(Failure::new(Code::No, "nothing was revoked"));
    }
    let revoked = locks.revoke(&opt.name, attempt).await?;
    if opt.json {
        print::json(&Revoked { name: &opt.name, attempt, revoked })?;
    }
    locks.close().await?;
    match revoked {
        true => Ok(()),
        false => Err(Failure::new(Code::No, format!("{attempt} has left {} meanwhile", opt.name))),
    }
}

/// The only entry whose attempt starts with the argument.
fn find<'a>(queue: &'a [Entry], opt: &Revoke) -> Result<(Uuid, &'a Entry), Failure> {
    let wanted = opt.attempt.to_ascii_lowercase();
    let attempts = queue.iter().filter_map(|entry| Some((entry.attempt?, entry)));
    let mut found = attempts.filter(|(attempt, _)| attempt.to_string().starts_with(&wanted));
    let no = |text: String| Err(Failure::new(Code::No, text));
    match (found.next(), found.next()) {
        (Some(_), _) if wanted.is_empty() => no("an attempt must not be empty".to_owned()),
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            no(format!("{wanted:?} is the start of several attempts of {}", opt.name))
        }
        (None, _) => no(format!("no holder or waiter of {} is the attempt {wanted:?}", opt.name)),
    }
}

fn confirmed(name: &str, entry: &Entry) -> io::Result<bool> {
    let what = if entry.holds { "the lock" } else { "the place in line" };
    let question = format!("Take {what} {name} away from {}? [y/N] ", who(entry));
    io::stderr().write_all(Plain(question).to_string().as_bytes())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
