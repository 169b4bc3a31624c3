//! `distlock watch`: changes of locks as they happen.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use distlock::{Entry, LockName};
use lock_core::wall_clock;
use serde::Serialize;

use crate::{
    choice::Choice,
    escape::Plain,
    exit::Failure,
    fit, ls,
    opt::Watch,
    print::{self, who},
    show::Queue,
};

/// Time between two looks: the stores tell only waiters of changes.
const PERIOD: Duration = Duration::from_secs(1);

type Queues = Vec<(LockName, Vec<Entry>)>;

/// A lock's queue at a time.
#[derive(Serialize)]
struct Change<'a> {
    at: String,
    #[serde(flatten)]
    queue: Queue<'a>,
}

/// Looks once a second until a signal ends it. Redraws a table on a terminal. Otherwise, prints a
/// line for each lock that changed.
pub(crate) async fn watch(opt: &Watch, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    let live = !opt.json && io::stdout().is_terminal();
    let mut seen = BTreeMap::new();
    let mut begun = opt.json;
    loop {
        let queues = ls::queues(&locks, &opt.prefix).await?;
        if !live && !begun {
            begin(opt, store, &queues)?;
            begun = true;
        }
        match live {
            true => redraw(opt, store, &queues)?,
            false => tell(opt, &queues, &mut seen)?,
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Prints the first line, which names the store even if there is no lock.
fn begin(opt: &Watch, store: &Choice, queues: &Queues) -> io::Result<()> {
    let at = print::time(wall_clock());
    match queues.len() {
        0 => print::line(format_args!("{at} {} in {store}", ls::unused(&opt.prefix))),
        1 => print::line(format_args!("{at} 1 name in {store}")),
        names => print::line(format_args!("{at} {names} names in {store}")),
    }
}

/// Draws as much as fits on the terminal.
fn redraw(opt: &Watch, store: &Choice, queues: &Queues) -> io::Result<()> {
    let (at, names) = (print::time(wall_clock()), queues.len());
    let heading = match names {
        0 => format!("{at} · {} in {store}", Plain(ls::unused(&opt.prefix))),
        _ => format!("{at} · {names} names {} in {store}", Plain(&opt.prefix)),
    };
    let rows = queues.iter().flat_map(|(name, queue)| rows(name, queue));
    let table = print::table_lines(&["name", "held by", "for", "waiting"], rows);
    let mut lines = [heading, String::new()].into_iter().chain(table).collect();
    if let Some((width, height)) = terminal_size::terminal_size_of(io::stdout()) {
        // The cursor stands below the lines.
        lines = fit::screen(lines, width.0.into(), usize::from(height.0).saturating_sub(1));
    }
    // Cursor home, then clear: no flicker.
    write!(io::stdout(), "\x1b[H\x1b[J")?;
    print::lines(lines)
}

/// A row for the holders, and one for each waiter with its time in line.
fn rows(name: &LockName, queue: &[Entry]) -> Vec<Vec<String>> {
    let mut rows = vec![ls::row(name, queue)];
    let waiters = queue.iter().filter(|entry| !entry.holds);
    rows.extend((1..).zip(waiters).map(|(place, waiter)| {
        let since = waiter.holder.queued_at.map(print::age).unwrap_or_default();
        vec![String::new(), format!("  {place}. {}", who(waiter)), since, String::new()]
    }));
    rows
}

fn tell(opt: &Watch, queues: &Queues, seen: &mut BTreeMap<LockName, Vec<Entry>>) -> io::Result<()> {
    let now: BTreeMap<_, _> = queues.iter().cloned().collect();
    let gone = seen.keys().filter(|name| !now.contains_key(*name)).cloned().collect::<Vec<_>>();
    let same = |name: &LockName, queue: &[Entry]| {
        seen.get(name).is_some_and(|old| people(old) == people(queue))
    };
    for (name, queue) in now.iter().filter(|(name, queue)| !same(name, queue)) {
        line(opt, name, queue)?;
    }
    gone.iter().try_for_each(|name| line(opt, name, &[]))?;
    *seen = now;
    Ok(())
}

/// The clients in a queue, without the facts that change all the time.
fn people(queue: &[Entry]) -> Vec<(bool, &str, Option<uuid::Uuid>)> {
    queue.iter().map(|entry| (entry.holds, who(entry), entry.attempt)).collect()
}

fn line(opt: &Watch, name: &LockName, queue: &[Entry]) -> io::Result<()> {
    let at = print::time(wall_clock());
    if opt.json {
        return print::json(&Change { at, queue: Queue::new(name.as_str(), queue) });
    }
    let holders: Vec<_> = queue.iter().filter(|entry| entry.holds).map(who).collect();
    match holders.as_slice() {
        [] if queue.is_empty() => print::line(format_args!("{at} {name}: free")),
        [] => print::line(format_args!("{at} {name}: {} waiting", queue.len())),
        held => {
            let waiting = queue.len() - held.len();
            print::line(format_args!("{at} {name}: held by {}; {waiting} waiting", held.join(", ")))
        }
    }
}
