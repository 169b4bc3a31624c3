//! `distlock ls`: the names in use, and those whose work is done.

use std::collections::BTreeMap;

use distlock::{Entry, LockName, Locks, Mark};

use crate::{
    choice::Choice,
    exit::Failure,
    marks,
    opt::Ls,
    print::{self, held_for, who},
    show::Queue,
};

/// Asks for each name separately, so a lock that comes or goes meanwhile may be missing.
pub(crate) async fn ls(opt: &Ls, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    let queues = queues(&locks, &opt.prefix).await?;
    let marks = marks::below(&locks, &opt.prefix).await?;
    if opt.json {
        print::json(&with_marks(&queues, &marks))?;
        return Ok(locks.close().await?);
    }
    if queues.is_empty() {
        print::heading(format_args!("{} in {store}", unused(&opt.prefix)))?;
    } else {
        print::heading(format_args!("in {store}:"))?;
        let rows = queues.iter().map(|(name, queue)| row(name, queue));
        print::table(&["name", "held by", "for", "waiting"], rows)?;
    }
    print::lines(marks.iter().map(|(name, mark)| format!("{name}: {}", marks::done_until(mark))))?;
    Ok(locks.close().await?)
}

/// All names with a queue or a mark, in their order.
fn with_marks<'a>(
    queues: &'a [(LockName, Vec<Entry>)],
    marks: &'a [(LockName, Mark)],
) -> Vec<Queue<'a>> {
    let queue = |(name, queue): &'a (LockName, Vec<Entry>)| {
        (name.as_str(), Queue::new(name.as_str(), queue))
    };
    let mut names: BTreeMap<_, _> = queues.iter().map(queue).collect();
    for (name, mark) in marks {
        let name = name.as_str();
        names.entry(name).or_insert_with(|| Queue::new(name, &[])).done = Some(mark.into());
    }
    names.into_values().collect()
}

/// The message for an empty list.
pub(crate) fn unused(prefix: &str) -> String {
    match prefix {
        "" => "no client holds or waits for a lock".to_owned(),
        prefix => format!("no client holds or waits for a lock whose name starts with {prefix}"),
    }
}

/// The names in use that start with `prefix`, and their queues.
pub(crate) async fn queues(
    locks: &Locks,
    prefix: &str,
) -> Result<Vec<(LockName, Vec<Entry>)>, Failure> {
    let mut queues = Vec::new();
    for name in locks.names(prefix).await? {
        let queue = locks.inspect(&name).await?;
        if !queue.is_empty() {
            queues.push((name, queue));
        }
    }
    Ok(queues)
}

/// A name, the first holder with the number of others, its time of hold, the number of waiters.
pub(crate) fn row(name: &LockName, queue: &[Entry]) -> Vec<String> {
    let holders = queue.iter().filter(|entry| entry.holds).count();
    let first = queue.iter().find(|entry| entry.holds);
    let holder = match (first, holders) {
        (None, _) => "none".to_owned(),
        (Some(holder), 1) => who(holder).to_owned(),
        (Some(holder), n) => format!("{} and {} more", who(holder), n - 1),
    };
    let held = first.map(held_for).unwrap_or_default();
    vec![name.to_string(), holder, held, (queue.len() - holders).to_string()]
}
