//! The commands that call the scripts.

use std::time::Duration;

use lock_core::{FencingToken, Wait};
use redis::{Cmd, Value};
use uuid::Uuid;

use super::lua::{
    ACQUIRE, ACQUIRE_ALL, CONVERT, FLOOR, HAND_OVER, KEEP, Lua, PUBLISH, READ, RELEASE, REVOKE,
    ROUND, SIMPLE_ACQUIRE, SIMPLE_RELEASE, called,
};
use crate::{
    config::Mode,
    layout::{
        key::{Key, KeyName},
        kind::EXCLUSIVE,
        ticket::Ticket,
    },
};

/// Begins the call of a script. `bytes`: the size of its arguments.
fn call(script: &Lua, keys: &[KeyName<'_>], arguments: usize, bytes: usize) -> Cmd {
    let names: usize = keys.iter().map(KeyName::len).sum();
    let mut command = Cmd::with_capacity(3 + keys.len() + arguments, 52 + names + bytes);
    command.arg("EVALSHA").arg(script.hash()).arg(keys.len()).arg(keys);
    command
}

/// Calls a script whose keys are a name's lock, its queue and the token floor.
fn of_name(script: &Lua, key: &Key, arguments: usize, bytes: usize) -> Cmd {
    call(script, &[key.own(), key.queue(), key.floor()], arguments, bytes)
}

/// The lock and the queue of each name, and the token floor, which is the last key of a script that
/// may grant. All names of one client share it.
fn of_names<'a>(names: impl Iterator<Item = &'a Key> + Clone) -> Vec<KeyName<'a>> {
    let floor = names.clone().next().map(Key::floor);
    names.flat_map(|key| [key.own(), key.queue()]).chain(floor).collect()
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

/// `word`: the word of the kind. `said`: the attempt's own description, if it has one; for a
/// candidate, its description and its value.
pub(crate) fn acquire(
    (key, ticket, ttl): Member<'_>,
    wait: Wait,
    word: &str,
    said: Option<&[u8]>,
) -> Cmd {
    let keys = [key.own(), key.queue(), key.fence(), key.floor()];
    let mut command = call(&ACQUIRE, &keys, 5, 85 + said.map_or(0, <[u8]>::len));
    command.arg(ticket.text()).arg(millis(ttl));
    if wait == Wait::Try || word != EXCLUSIVE || said.is_some() {
        command.arg(if wait == Wait::Try { b"0" } else { b"1" });
    }
    if word != EXCLUSIVE || said.is_some() {
        command.arg(word);
    }
    if let Some(said) = said {
        command.arg(said);
    }
    command
}

/// Same as [`acquire`], for all of several locks or none of them, each with its holder's
/// description; empty if it is not to be written.
pub(crate) fn acquire_all(wishes: &[(Member<'_>, &str)]) -> Cmd {
    let keys = of_names(wishes.iter().map(|((key, ..), _)| *key));
    let mut command = call(&ACQUIRE_ALL, &keys, 3 * wishes.len(), 80 * wishes.len());
    for ((_, ticket, ttl), said) in wishes {
        command.arg(ticket.text()).arg(millis(*ttl)).arg(said);
    }
    command
}

/// `described`: the holder has a description of its own, which is removed too. A leader's is with
/// its value.
pub(crate) fn release(key: &Key, ticket: &Ticket, described: bool, leads: bool) -> Cmd {
    let (lock, queue, floor) = (key.own(), key.queue(), key.floor());
    let mut command = match described && !leads {
        true => call(&RELEASE, &[lock, queue, key.waiting(), floor], 2, 50),
        false => call(&RELEASE, &[lock, queue, floor], 2, 50),
    };
    command.arg(ticket.text());
    if leads {
        command.arg(1);
    }
    command
}

/// Same as [`release`] or [`simple_release`], for many attempts, each with whether it leads.
pub(crate) fn release_all<'a>(
    mode: Mode,
    attempts: impl ExactSizeIterator<Item = (&'a Key, &'a Ticket, bool)> + Clone,
) -> Cmd {
    if mode == Mode::Simple {
        return simple_release(attempts.map(|(key, ticket, _)| (key, ticket)));
    }
    let keys = of_names(attempts.clone().map(|(key, ..)| key));
    let mut command = call(&RELEASE, &keys, 2 * attempts.len(), 50 * attempts.len());
    for (_, ticket, leads) in attempts {
        command.arg(ticket.text()).arg(u8::from(leads));
    }
    command
}

/// `version` counts the values that this leader has published.
pub(crate) fn publish(
    key: &Key,
    ticket: &Ticket,
    version: u64,
    database: i64,
    value: &[u8],
) -> Cmd {
    let mut command = of_name(&PUBLISH, key, 4, 80 + value.len());
    command.arg(ticket.text()).arg(version).arg(database).arg(value);
    command
}

/// `what`: `leader`; `all` for the holders of the lock, and its waiters; or `places` for a holder,
/// and the places of `attempts`.
pub(crate) fn read(key: &Key, what: &str, attempts: &[Ticket]) -> Cmd {
    let mut command = of_name(&READ, key, 1 + attempts.len(), 6 + 56 * attempts.len());
    command.arg(what);
    for attempt in attempts {
        command.arg(attempt.text());
    }
    command
}

pub(crate) fn simple_acquire(key: &Key, ticket: &Ticket, ttl: Duration) -> Cmd {
    let mut command = call(&SIMPLE_ACQUIRE, &[key.own(), key.fence(), key.floor()], 2, 45);
    command.arg(ticket.text()).arg(millis(ttl));
    command
}

pub(crate) fn simple_release<'a>(
    attempts: impl ExactSizeIterator<Item = (&'a Key, &'a Ticket)> + Clone,
) -> Cmd {
    let keys: Vec<_> = attempts.clone().map(|(key, _)| key.own()).collect();
    let mut command = call(&SIMPLE_RELEASE, &keys, keys.len(), 33 * keys.len());
    for (_, ticket) in attempts {
        command.arg(ticket.text());
    }
    command
}

pub(crate) type Member<'a> = (&'a Key, &'a Ticket, Duration);
/// A member, and the number of renewals in which it took part.
pub(crate) type Turn<'a> = (Member<'a>, u32);

/// Renews attempts that hold `alone`, and renews or keeps alive `others`, each with its turn. Any
/// attempt may be among `others`.
pub(crate) fn renew(alone: &[Member<'_>], others: &[Turn<'_>]) -> Cmd {
    let mut keys: Vec<_> = alone.iter().map(|(key, ..)| key.own()).collect();
    keys.extend(others.iter().flat_map(|((key, ..), _)| [key.own(), key.queue()]));
    let any = alone.first().or(others.first().map(|(member, _)| member));
    keys.extend(any.map(|(key, ..)| key.floor()));
    let members = alone.len() + others.len();
    let mut command = call(&ROUND, &keys, 1 + 3 * members, 4 + 65 * members);
    command.arg(alone.len());
    for (_, ticket, ttl) in alone {
        command.arg(ticket.text()).arg(millis(*ttl));
    }
    for ((_, ticket, ttl), turn) in others {
        command.arg(ticket.text()).arg(millis(*ttl)).arg(turn);
    }
    command
}

/// Renews an attempt in one key of its name. `group`: the lock's value, for the key of its members.
pub(crate) fn keep((key, ticket, ttl): Member<'_>, part: Part, group: Option<&[u8]>) -> Cmd {
    let (name, word) = match part {
        Part::Mine => (key.own(), "mine"),
        Part::Lock => (key.own(), "lock"),
        Part::Members => (key.members(), "members"),
        Part::Holders => (key.holders(), "holders"),
        Part::Leader => (key.leader(), "leader"),
        Part::Waiting => (key.waiting(), "waiting"),
    };
    let mut command = call(&KEEP, &[name], 4, 100);
    command.arg(ticket.text()).arg(millis(ttl)).arg(word);
    if let Some(group) = group {
        command.arg(group);
    }
    command
}

/// A key of a name in which [`keep`] renews an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The lock of an attempt that holds it alone.
    Mine,
    /// The lock of an attempt that may hold it beside others.
    Lock,
    Members,
    Holders,
    Leader,
    Waiting,
}

/// `word`: the word of the new kind of the attempt with this token.
pub(crate) fn convert(key: &Key, ticket: &Ticket, token: FencingToken, word: &str) -> Cmd {
    let mut command = of_name(&CONVERT, key, 3, 91);
    command.arg(ticket.text()).arg(token.value()).arg(word);
    command
}

/// Gives a lock from one attempt to another. `said`: the description of the adopting attempt, empty
/// if it has none of its own; `None` when detaching.
pub(crate) fn hand_over(
    key: &Key,
    from: &[u8],
    to: &Ticket,
    ttl: Duration,
    token: FencingToken,
    said: Option<&str>,
) -> Cmd {
    let (lock, fence, floor) = (key.own(), key.fence(), key.floor());
    let bytes = 125 + said.map_or(0, str::len);
    // Without a queue there is no key for a holder's description.
    let mut command = match to.text().len() > Ticket::SIMPLE {
        true => call(&HAND_OVER, &[lock, fence, key.waiting(), floor], 5, bytes),
        false => call(&HAND_OVER, &[lock, fence, floor], 5, bytes),
    };
    command.arg(from).arg(to.text()).arg(millis(ttl)).arg(token.value());
    if let Some(said) = said {
        command.arg(said);
    }
    command
}

/// Whether an answer says that the command gained something: a lock, or more time.
pub(crate) fn gains(command: &Cmd, answer: &Value) -> bool {
    let asks = |script: &Lua| called(command).is_some_and(|called| called.hash() == script.hash());
    match answer {
        Value::Int(number) => *number > 0,
        // A place in the queue.
        Value::Array(_) if asks(&ACQUIRE) => false,
        _ => true,
    }
}

pub(crate) fn revoke(key: &Key, attempt: Uuid) -> Cmd {
    let mut command = of_name(&REVOKE, key, 1, 40);
    command.arg(attempt.simple().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    command
}

/// Raises the token floor to `above`, if one is given. Asks how far tokens have come.
pub(crate) fn floor(key: KeyName<'_>, above: Option<FencingToken>) -> Cmd {
    let mut command = call(&FLOOR, &[key], 1, 16);
    command.arg(above.map_or(0, FencingToken::value));
    command
}
