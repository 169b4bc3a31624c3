//! `distlock show`: the holders and waiters of a lock, and the mark of its work.

use std::time::SystemTime;

use distlock::{Entry, Kind};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    choice::Choice,
    exit::Failure,
    marks::{self, Done},
    opt::Show,
    print::{self, who},
};

/// The queue of a lock as data for programs; `ls` and `watch` print it, too. Its fields have the
/// library's names.
#[derive(Serialize)]
pub(crate) struct Queue<'a> {
    pub(crate) name: &'a str,
    pub(crate) holders: Vec<Person>,
    pub(crate) waiters: Vec<Person>,
    /// The mark of work that is done for a period. `watch` does not look for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Done>,
}

/// A holder or a waiter.
#[derive(Serialize)]
pub(crate) struct Person {
    /// The argument of `revoke`. Foreign clients have none.
    pub(crate) attempt: Option<Uuid>,
    /// The client's own description.
    pub(crate) description: Option<String>,
    /// The kind of its request.
    pub(crate) kind: Kind,
    /// When it joined the queue, RFC 3339.
    pub(crate) queued_at: Option<String>,
    /// When it was granted the lock, if the store can tell.
    pub(crate) granted_at: Option<String>,
    /// Time until its entry ends without a renewal.
    pub(crate) ttl_left_ms: Option<u128>,
    pub(crate) token: Option<u64>,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(name: &'a str, entries: &[Entry]) -> Self {
        let of = |holds| entries.iter().filter(move |entry| entry.holds == holds);
        Self {
            name,
            holders: of(true).map(Person::from).collect(),
            waiters: of(false).map(Person::from).collect(),
            done: None,
        }
    }
}

impl From<&Entry> for Person {
    fn from(entry: &Entry) -> Self {
        Self {
            attempt: entry.attempt,
            description: entry.holder.description.clone(),
            kind: entry.kind,
            queued_at: entry.holder.queued_at.map(print::time),
            granted_at: entry.holder.granted_at.map(print::time),
            ttl_left_ms: entry.ttl_left.map(|left| left.as_millis()),
            token: entry.holder.token.map(|token| token.value()),
        }
    }
}

pub(crate) async fn show(opt: &Show, store: &Choice) -> Result<(), Failure> {
    let locks = store.connect().await?;
    let queue = locks.inspect(&opt.name).await?;
    let mark = marks::of(&locks, &opt.name).await?;
    let done = mark.as_ref().map(Done::from);
    match opt.json {
        true => print::json(&Queue { done, ..Queue::new(&opt.name, &queue) })?,
        false if queue.is_empty() => print::line(format_args!("in {store}: {} is free", opt.name))?,
        false => {
            print::heading(format_args!("in {store}:"))?;
            print::lines(describe(&opt.name, &queue))?;
        }
    }
    if let Some(mark) = mark.filter(|_| !opt.json) {
        print::line(format_args!("{} was {}", opt.name, marks::done_until(&mark)))?;
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
