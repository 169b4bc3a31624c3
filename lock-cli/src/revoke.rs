//! `distlock revoke`: takes a lock away, or clears the mark of its work.

use std::io::{self, BufRead, IsTerminal, Write};

use distlock::{Entry, Locks};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    choice::Choice,
    escape::Plain,
    exit::{Code, Failure},
    marks,
    opt::Revoke,
    print::{self, who},
};

#[derive(Serialize)]
struct Revoked<'a> {
    name: &'a str,
    attempt: Uuid,
    revoked: bool,
}

#[derive(Serialize)]
struct Cleared<'a> {
    name: &'a str,
    cleared: bool,
}

pub(crate) async fn revoke(opt: &Revoke, store: &Choice) -> Result<(), Failure> {
    if !opt.yes && !io::stdin().is_terminal() {
        return Err(Failure::new(
            Code::Usage,
            "there is no terminal to ask on: revoke needs --yes",
        ));
    }
    let locks = store.connect().await?;
    if opt.done {
        return clear(opt, &locks).await;
    }
    let queue = locks.inspect(&opt.name).await?;
    let (attempt, entry) = find(&queue, opt)?;
    let what = if entry.holds { "the lock" } else { "the place in line" };
    let question = format!("Take {what} {} away from {}?", opt.name, who(entry));
    if !opt.yes && !confirmed(&question).map_err(Failure::system("asking"))? {
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

/// Clears the mark of work that is done.
async fn clear(opt: &Revoke, locks: &Locks) -> Result<(), Failure> {
    let name = &opt.name;
    let no_mark = || Failure::new(Code::No, format!("no work of {name} is marked as done"));
    let mark = locks.mark(name).await?.ok_or_else(no_mark)?;
    let question = format!("Have {name} done again, which was {}?", marks::done_until(&mark));
    if !opt.yes && !confirmed(&question).map_err(Failure::system("asking"))? {
        return Err(Failure::new(Code::No, "nothing was cleared"));
    }
    let cleared = locks.clear_mark(name).await?;
    if opt.json {
        print::json(&Cleared { name, cleared })?;
    }
    locks.close().await?;
    if cleared { Ok(()) } else { Err(no_mark()) }
}

/// The only entry whose attempt starts with the argument.
fn find<'a>(queue: &'a [Entry], opt: &Revoke) -> Result<(Uuid, &'a Entry), Failure> {
    let wanted = opt.attempt.as_deref().unwrap_or_default().to_ascii_lowercase();
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

fn confirmed(question: &str) -> io::Result<bool> {
    io::stderr().write_all(format!("{} [y/N] ", Plain(question)).as_bytes())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
