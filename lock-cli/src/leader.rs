//! `distlock leader`: the leader of an election.

use std::io::{self, IsTerminal, Write};

use distlock::Leader;
use serde::Serialize;

use crate::{
    choice::Choice,
    exit::{Code, Failure},
    opt, print,
};

/// A leader, or that there is none.
#[derive(Serialize)]
struct Now<'a> {
    name: &'a str,
    /// The leader's value. Bytes that are not UTF-8 are replaced.
    value: Option<String>,
    token: Option<u64>,
    holder: Option<Holder<'a>>,
}

/// The leader, as far as the store can tell.
#[derive(Serialize)]
struct Holder<'a> {
    description: Option<&'a str>,
    queued_at: Option<String>,
    granted_at: Option<String>,
}

impl<'a> From<&'a Leader> for Holder<'a> {
    fn from(Leader { holder, .. }: &'a Leader) -> Self {
        Self {
            description: holder.description.as_deref(),
            queued_at: holder.queued_at.map(print::time),
            granted_at: holder.granted_at.map(print::time),
        }
    }
}

/// With `--watch`, runs until a signal ends it.
pub(crate) async fn leader(opt: &opt::Leader, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    let election = locks.election(&opt.name)?;
    if !opt.watch {
        let leader = election.leader().await?;
        tell(opt, leader.as_ref())?;
        locks.close().await?;
        let none = || Failure::new(Code::No, format!("no client leads {}", opt.name));
        return leader.map(drop).ok_or_else(none);
    }
    let mut observer = election.observe().await?;
    while let Some(now) = observer.next().await {
        tell(opt, now?.as_ref())?;
    }
    Ok(())
}

fn tell(opt: &opt::Leader, leader: Option<&Leader>) -> io::Result<()> {
    let value = leader.map(|leader| String::from_utf8_lossy(&leader.value).into_owned());
    if opt.json {
        return print::json(&Now {
            name: &opt.name,
            value,
            token: leader.map(|leader| leader.token.value()),
            holder: leader.map(Holder::from),
        });
    }
    match (leader, value) {
        (Some(leader), _) if !io::stdout().is_terminal() => raw(&leader.value),
        (_, Some(value)) => print::line(value),
        (_, None) if opt.watch => print::line("(no leader)"),
        (_, None) => Ok(()),
    }
}

/// Prints the leader's value byte by byte, as a line for programs.
fn raw(value: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(value)?;
    out.write_all(b"\n")?;
    out.flush()
}
