//! `distlock ls`: the names in use.

use distlock::{Entry, LockName, Locks};

use crate::{
    choice::Choice,
    exit::Failure,
    opt::Ls,
    print::{self, held_for, who},
    show::Queue,
};

/// Asks for each name separately, so a lock that comes or goes meanwhile may be missing.
pub(crate) async fn ls(opt: &Ls, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    let queues = queues(&locks, &opt.prefix).await?;
    if opt.json {
        let queues: Vec<_> =
            queues.iter().map(|(name, queue)| Queue::new(name.as_str(), queue)).collect();
        print::json(&queues)?;
    } else if queues.is_empty() {
        print::heading(format_args!("{} in {store}", unused(&opt.prefix)))?;
    } else {
        print::heading(format_args!("in {store}:"))?;
        let rows = queues.iter().map(|(name, queue)| row(name, queue));
        print::table(&["name", "held by", "for", "waiting"], rows)?;
    }
    Ok(locks.close().await?)
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
