//! The commands that call the scripts.

use std::time::Duration;

use lock_core::{FencingToken, Wait};
use redis::Cmd;
use uuid::Uuid;

use super::lua::{
    ACQUIRE, ACQUIRE_ALL, CONVERT, FLOOR, HAND_OVER, Lua, PUBLISH, READ, RELEASE, REVOKE, ROUND,
    SIMPLE_ACQUIRE, SIMPLE_RELEASE,
};
use crate::{
    config::Mode,
    layout::{key::Key, kind::EXCLUSIVE, ticket::Ticket},
};

fn command(script: &Lua, keys: usize, arguments: usize, bytes: usize) -> Cmd {
    let mut command = Cmd::with_capacity(3 + keys + arguments, 50 + bytes);
    command.arg("EVALSHA").arg(script.hash()).arg(keys);
    command
}

/// Calls a script whose keys are a name's lock, its queue and the token floor.
fn of_name(script: &Lua, key: &Key, arguments: usize, bytes: usize) -> Cmd {
    let mut command = command(script, 3, arguments, 3 * key.lock().len() + 40 + bytes);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor());
    command
}

/// Adds the token floor's key, the last key of a script that may grant. All names of one client
/// share it.
fn floor_of(command: &mut Cmd, any: Option<&Key>) {
    match any {
        Some(key) => command.arg(key.floor()),
        None => command.arg(b""),
    };
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
    let bytes = 4 * key.lock().len() + 120 + said.map_or(0, <[u8]>::len);
    let mut command = command(&ACQUIRE, 4, 5, bytes);
    command.arg(key.lock()).arg(key.queue()).arg(key.fence()).arg(key.floor());
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
    let count = wishes.len();
    let mut command = command(&ACQUIRE_ALL, 2 * count + 1, 3 * count, 160 * count);
    for ((key, ..), _) in wishes {
        command.arg(key.lock()).arg(key.queue());
    }
    floor_of(&mut command, wishes.first().map(|((key, ..), _)| *key));
    for ((_, ticket, ttl), said) in wishes {
        command.arg(ticket.text()).arg(millis(*ttl)).arg(said);
    }
    command
}

/// `described`: the holder has a description of its own, which is removed too. A leader's is with
/// its value.
pub(crate) fn release(key: &Key, ticket: &Ticket, described: bool, leads: bool) -> Cmd {
    let described = described && !leads;
    let keys = 3 + usize::from(described);
    let mut command = command(&RELEASE, keys, 2, 4 * key.lock().len() + 80);
    command.arg(key.lock()).arg(key.queue());
    if described {
        command.arg(key.waiting());
    }
    command.arg(key.floor()).arg(ticket.text());
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
    let count = attempts.len();
    if mode == Mode::Simple {
        return simple_release(attempts.map(|(key, ticket, _)| (key, ticket)));
    }
    let mut command = command(&RELEASE, 2 * count + 1, 2 * count, 160 * count);
    for (key, ..) in attempts.clone() {
        command.arg(key.lock()).arg(key.queue());
    }
    floor_of(&mut command, attempts.clone().next().map(|(key, ..)| key));
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
    let mut command = command(&SIMPLE_ACQUIRE, 3, 2, 2 * key.lock().len() + 70);
    command.arg(key.lock()).arg(key.fence()).arg(key.floor()).arg(ticket.text()).arg(millis(ttl));
    command
}

pub(crate) fn simple_release<'a>(
    attempts: impl ExactSizeIterator<Item = (&'a Key, &'a Ticket)> + Clone,
) -> Cmd {
    let count = attempts.len();
    let mut command = command(&SIMPLE_RELEASE, count, count, 80 * count);
    for (key, _) in attempts.clone() {
        command.arg(key.lock());
    }
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
    let (keys, members) = (alone.len() + 2 * others.len() + 1, alone.len() + others.len());
    let mut command = command(&ROUND, keys, 1 + 3 * members, 130 * members);
    for (key, ..) in alone {
        command.arg(key.lock());
    }
    for ((key, ..), _) in others {
        command.arg(key.lock()).arg(key.queue());
    }
    let any = alone.first().or(others.first().map(|(member, _)| member));
    floor_of(&mut command, any.map(|(key, ..)| *key));
    command.arg(alone.len());
    for (_, ticket, ttl) in alone {
        command.arg(ticket.text()).arg(millis(*ttl));
    }
    for ((_, ticket, ttl), turn) in others {
        command.arg(ticket.text()).arg(millis(*ttl)).arg(turn);
    }
    command
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
    // Without a queue there is no key for a holder's description.
    let queues = to.text().len() > Ticket::SIMPLE;
    let bytes = 5 * key.lock().len() + 210 + said.map_or(0, str::len);
    let mut command = command(&HAND_OVER, 3 + usize::from(queues), 5, bytes);
    command.arg(key.lock()).arg(key.fence());
    if queues {
        command.arg(key.waiting());
    }
    command.arg(key.floor()).arg(from).arg(to.text()).arg(millis(ttl)).arg(token.value());
    if let Some(said) = said {
        command.arg(said);
    }
    command
}

pub(crate) fn revoke(key: &Key, attempt: Uuid) -> Cmd {
    let mut command = of_name(&REVOKE, key, 1, 40);
    command.arg(attempt.simple().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    command
}

/// Raises the token floor to `above`, if one is given. Asks how far tokens have come.
pub(crate) fn floor(key: &[u8], above: Option<FencingToken>) -> Cmd {
    let mut command = command(&FLOOR, 1, 1, key.len() + 40);
    command.arg(key).arg(above.map_or(0, FencingToken::value));
    command
}
