//! `distlock show`: the holders and waiters of a lock.

use std::time::SystemTime;

use distlock::Entry;

use crate::{
    choice::Choice,
    exit::Failure,
    opt::Show,
    print,
    queue::{Queue, who},
};

pub(crate) async fn show(opt: &Show, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    let queue = locks.inspect(&opt.name).await?;
    match opt.json {
        true => print::json(&Queue::new(&opt.name, &queue))?,
        false if queue.is_empty() => print::line(format_args!("in {store}: {} is free", opt.name))?,
        false => {
            print::heading(format_args!("in {store}:"))?;
            print::lines(describe(&opt.name, &queue))?;
        }
    }
    Ok(locks.close().await?)
}

/// Describes the queue, line by line.
fn describe(name: &str, queue: &[Entry]) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in queue.iter().filter(|entry| entry.holds) {
        lines.push(format!("{name} is held by {}", who(entry)));
        lines.extend(describe_entry(entry));
    }
    let waiters = queue.iter().filter(|entry| !entry.holds);
    for (position, entry) in (1..).zip(waiters) {
        lines.push(format!("{position}. in line: {}", who(entry)));
        lines.extend(describe_entry(entry));
    }
    lines
}

fn describe_entry(entry: &Entry) -> impl Iterator<Item = String> {
    let holder = &entry.holder;
    let facts = [
        ("attempt", entry.attempt.map(|attempt| attempt.to_string())),
        ("kind", Some(entry.kind.to_string())),
        ("granted", holder.granted_at.map(ago)),
        ("queued", holder.queued_at.map(ago)),
        ("token", holder.token.map(|token| token.to_string())),
        ("TTL left", entry.ttl_left.map(print::seconds)),
    ];
    let known = facts.into_iter().filter_map(|(label, value)| Some((label, value?)));
    known.map(|(label, value)| format!("    {label:<9} {value}"))
}

fn ago(time: SystemTime) -> String {
    format!("{} ago, {}", print::age(time), print::time(time))
}
