//! `distlock show`: who holds a lock, and who waits.

use std::fmt::Write;

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
        false => print::text(describe(&opt.name, &queue).trim_end())?,
    }
    Ok(locks.close().await?)
}

/// The queue in words.
fn describe(name: &str, queue: &[Entry]) -> String {
    let mut text = String::new();
    if queue.is_empty() {
        return format!("{name} is free");
    }
    for entry in queue.iter().filter(|entry| entry.holds) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name} is held by {}", who(entry));
        describe_entry(&mut text, entry);
    }
    let waiters = queue.iter().filter(|entry| !entry.holds);
    for (position, entry) in (1..).zip(waiters) {
        let _ = writeln!(text, "{position}. in line: {}", who(entry));
        describe_entry(&mut text, entry);
    }
    text
}

fn describe_entry(text: &mut String, entry: &Entry) {
    let holder = &entry.holder;
    let facts = [
        ("id", entry.attempt.map(|id| id.to_string())),
        ("kind", Some(entry.kind.to_string())),
        (
            "since",
            holder.since.map(|time| format!("{} ago, {}", print::age(time), print::time(time))),
        ),
        ("token", holder.token.map(|token| token.to_string())),
        ("TTL left", entry.ttl_left.map(print::seconds)),
    ];
    for (label, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "    {label:<9} {value}");
        }
    }
}
