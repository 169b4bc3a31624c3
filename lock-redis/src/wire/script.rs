//! The requests that call the scripts.

use std::time::Duration;

use lock_core::{FencingToken, Wait};
use uuid::Uuid;

use super::{
    call::{Call, Request},
    lua::{
        ACQUIRE, ACQUIRE_ALL, CONVERT, FLOOR, HAND_OVER, KEEP, Lua, PUBLISH, READ, RELEASE, REVOKE,
        ROUND, SIMPLE_ACQUIRE, SIMPLE_RELEASE,
    },
};
use crate::{
    config::Mode,
    layout::{
        key::{Key, KeyName},
        kind::EXCLUSIVE,
        ticket::Ticket,
    },
};

/// Begins the call of a script that has no key of the token floor. `of`: a name of its keys.
/// `bytes`: the size of its arguments.
fn without_floor<'a>(
    script: &'static Lua,
    of: &'a Key,
    keys: &[KeyName<'_>],
    arguments: usize,
    bytes: usize,
) -> Request<'a> {
    let names: usize = keys.iter().map(KeyName::len).sum();
    let mut call = Call::new(script, keys.len(), arguments, names + bytes);
    call.arg(keys);
    Request { call, key: of.lock(), floor: None }
}

/// Same as [`without_floor`], with the token floor as the last key. All names of a client share it.
fn with_floor<'a>(
    script: &'static Lua,
    of: &'a Key,
    keys: &[KeyName<'_>],
    arguments: usize,
    bytes: usize,
) -> Request<'a> {
    let floor = of.floor();
    let names = keys.iter().map(KeyName::len).sum::<usize>() + floor.len();
    let mut call = Call::new(script, keys.len() + 1, arguments, names + bytes);
    call.arg(keys).arg(floor);
    Request { call, key: of.lock(), floor: Some(floor) }
}

/// Calls a script whose keys are a name's lock, its queue and the token floor.
fn of_name<'a>(script: &'static Lua, key: &'a Key, arguments: usize, bytes: usize) -> Request<'a> {
    with_floor(script, key, &[key.own(), key.queue()], arguments, bytes)
}

/// The lock and the queue of each name.
fn of_names<'a>(names: impl Iterator<Item = &'a Key>) -> Vec<KeyName<'a>> {
    names.flat_map(|key| [key.own(), key.queue()]).collect()
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

/// An attempt in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: &'a Key,
    pub(crate) ticket: &'a Ticket,
    pub(crate) ttl: Duration,
}

/// `word`: the word of the kind. `description`: the attempt's own, if it has one; for a candidate,
/// with its value.
pub(crate) fn acquire<'a>(
    Member { key, ticket, ttl }: Member<'a>,
    wait: Wait,
    word: &str,
    description: Option<&[u8]>,
) -> Request<'a> {
    let keys = [key.own(), key.queue(), key.fence()];
    let bytes = 85 + description.map_or(0, <[u8]>::len);
    let mut request = with_floor(&ACQUIRE, key, &keys, 5, bytes);
    request.arg(ticket.text()).arg(millis(ttl));
    if wait == Wait::Try || word != EXCLUSIVE || description.is_some() {
        request.arg(if wait == Wait::Try { b"0" } else { b"1" });
    }
    if word != EXCLUSIVE || description.is_some() {
        request.arg(word);
    }
    if let Some(description) = description {
        request.arg(description);
    }
    request
}

/// Same as [`acquire`], for all of several locks or none of them, each with its holder's
/// description; empty if it is not to be written. `first`: one of the names.
pub(crate) fn acquire_all<'a>(wishes: &[(Member<'a>, &str)], first: &'a Key) -> Request<'a> {
    let keys = of_names(wishes.iter().map(|(member, _)| member.key));
    let count = wishes.len();
    let mut request = with_floor(&ACQUIRE_ALL, first, &keys, 3 * count, 80 * count);
    for (Member { ticket, ttl, .. }, description) in wishes {
        request.arg(ticket.text()).arg(millis(*ttl)).arg(description);
    }
    request
}

/// `described`: the holder has a description of its own, which is removed too. A leader's is with
/// its value.
pub(crate) fn release<'a>(
    key: &'a Key,
    ticket: &Ticket,
    described: bool,
    leads: bool,
) -> Request<'a> {
    let (lock, queue) = (key.own(), key.queue());
    let mut request = match described && !leads {
        true => with_floor(&RELEASE, key, &[lock, queue, key.waiting()], 2, 50),
        false => with_floor(&RELEASE, key, &[lock, queue], 2, 50),
    };
    request.arg(ticket.text());
    if leads {
        request.arg(1);
    }
    request
}

/// An attempt that is removed, and whether it leads.
pub(crate) type Leaving<'a> = (&'a Key, &'a Ticket, bool);

/// Same as [`release`] or [`simple_release`], for many attempts.
pub(crate) fn release_all<'a>(mode: Mode, attempts: &[Leaving<'a>], first: &'a Key) -> Request<'a> {
    if mode == Mode::Simple {
        return simple_release(attempts, first);
    }
    let keys = of_names(attempts.iter().map(|(key, ..)| *key));
    let count = attempts.len();
    let mut request = with_floor(&RELEASE, first, &keys, 2 * count, 50 * count);
    for (_, ticket, leads) in attempts {
        request.arg(ticket.text()).arg(u8::from(*leads));
    }
    request
}

/// `version` counts the values that this leader has published.
pub(crate) fn publish<'a>(
    key: &'a Key,
    ticket: &Ticket,
    version: u64,
    database: i64,
    value: &[u8],
) -> Request<'a> {
    let mut request = of_name(&PUBLISH, key, 4, 80 + value.len());
    request.arg(ticket.text()).arg(version).arg(database).arg(value);
    request
}

/// `what`: `leader`; `all` for the holders of the lock, and its waiters; or `places` for a holder,
/// and the places of `attempts`.
pub(crate) fn read<'a>(key: &'a Key, what: &str, attempts: &[Ticket]) -> Request<'a> {
    let mut request = of_name(&READ, key, 1 + attempts.len(), 6 + 56 * attempts.len());
    request.arg(what);
    for attempt in attempts {
        request.arg(attempt.text());
    }
    request
}

pub(crate) fn simple_acquire(Member { key, ticket, ttl }: Member<'_>) -> Request<'_> {
    let mut request = with_floor(&SIMPLE_ACQUIRE, key, &[key.own(), key.fence()], 2, 45);
    request.arg(ticket.text()).arg(millis(ttl));
    request
}

pub(crate) fn simple_release<'a>(attempts: &[Leaving<'a>], first: &'a Key) -> Request<'a> {
    let keys: Vec<_> = attempts.iter().map(|(key, ..)| key.own()).collect();
    let mut request = without_floor(&SIMPLE_RELEASE, first, &keys, keys.len(), 33 * keys.len());
    for (_, ticket, _) in attempts {
        request.arg(ticket.text());
    }
    request
}

/// Renews attempts that hold `alone`, and renews or keeps alive `others`, each with the number of
/// renewals in which it took part before: the server cleans another part of its queue each time.
/// Any attempt may be among `others`.
pub(crate) fn renew<'a>(
    alone: &[Member<'a>],
    others: &[(Member<'a>, u32)],
    first: &'a Key,
) -> Request<'a> {
    let mut keys: Vec<_> = alone.iter().map(|member| member.key.own()).collect();
    keys.extend(of_names(others.iter().map(|(member, _)| member.key)));
    let members = alone.len() + others.len();
    let mut request = with_floor(&ROUND, first, &keys, 1 + 3 * members, 4 + 65 * members);
    request.arg(alone.len());
    for Member { ticket, ttl, .. } in alone {
        request.arg(ticket.text()).arg(millis(*ttl));
    }
    for (Member { ticket, ttl, .. }, before) in others {
        request.arg(ticket.text()).arg(millis(*ttl)).arg(before);
    }
    request
}

/// Renews an attempt in one key of its name. `group`: the lock's value, for the key of its members.
pub(crate) fn keep<'a>(
    Member { key, ticket, ttl }: Member<'a>,
    part: Part,
    group: Option<&[u8]>,
) -> Request<'a> {
    let (name, word) = match part {
        Part::Mine => (key.own(), "mine"),
        Part::Lock => (key.own(), "lock"),
        Part::Members => (key.members(), "members"),
        Part::Holders => (key.holders(), "holders"),
        Part::Leader => (key.leader(), "leader"),
        Part::Waiting => (key.waiting(), "waiting"),
    };
    let mut request = without_floor(&KEEP, key, &[name], 4, 100);
    request.arg(ticket.text()).arg(millis(ttl)).arg(word);
    if let Some(group) = group {
        request.arg(group);
    }
    request
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
pub(crate) fn convert<'a>(
    key: &'a Key,
    ticket: &Ticket,
    token: FencingToken,
    word: &str,
) -> Request<'a> {
    let mut request = of_name(&CONVERT, key, 3, 91);
    request.arg(ticket.text()).arg(token.value()).arg(word);
    request
}

/// Gives a lock from one ticket to another. `description`: the adopting attempt's, empty if it has
/// none of its own; `None` when detaching.
pub(crate) fn hand_over<'a>(
    from: &[u8],
    Member { key, ticket, ttl }: Member<'a>,
    token: FencingToken,
    description: Option<&str>,
) -> Request<'a> {
    let (lock, fence) = (key.own(), key.fence());
    let bytes = 125 + description.map_or(0, str::len);
    // Without a queue there is no key for a holder's description.
    let mut request = match ticket.text().len() > Ticket::SIMPLE {
        true => with_floor(&HAND_OVER, key, &[lock, fence, key.waiting()], 5, bytes),
        false => with_floor(&HAND_OVER, key, &[lock, fence], 5, bytes),
    };
    request.arg(from).arg(ticket.text()).arg(millis(ttl)).arg(token.value());
    if let Some(description) = description {
        request.arg(description);
    }
    request
}

pub(crate) fn revoke(key: &Key, attempt: Uuid) -> Request<'_> {
    let mut request = of_name(&REVOKE, key, 1, 40);
    request.arg(attempt.simple().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    request
}

/// Raises the token floor to `above`, if one is given. Asks how far tokens have come.
pub(crate) fn floor(key: KeyName<'_>, above: Option<FencingToken>) -> Request<'_> {
    let mut call = Call::new(&FLOOR, 1, 1, key.len() + 16);
    call.arg(key).arg(above.map_or(0, FencingToken::value));
    // It has no name. In a cluster there is no floor.
    Request { call, key: b"", floor: Some(key) }
}
