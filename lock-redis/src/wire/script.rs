//! The requests that call the scripts.

use std::time::Duration;

use lock_core::{FencingToken, Wait};
use uuid::Uuid;

use super::{
    call::{Call, Request, millis},
    lua::{
        ACQUIRE, ACQUIRE_ALL, CONVERT, DETACH, FLOOR, Lua, MARK, PUBLISH, READ, RELEASE, RENEW_KEY,
        REVOKE, ROUND,
    },
};
use crate::layout::{
    key::{Key, KeyName},
    kind::EXCLUSIVE,
    ticket::Ticket,
};

/// Begins the call of a script whose last key is the token floor, which all names of a client
/// share. `of`: a name of its keys.
fn with_floor<'a>(script: &'static Lua, of: &'a Key, keys: &[KeyName<'a>]) -> Request<'a> {
    Request { call: Call::new(script, keys), key: of.lock(), floor: keys.last().copied() }
}

/// Calls a script whose keys are a name's lock, its queue and the token floor.
fn of_name<'a>(script: &'static Lua, key: &'a Key) -> Request<'a> {
    with_floor(script, key, &[key.lock_name(), key.queue(), key.floor()])
}

/// The lock and the queue of each name.
fn of_names<'a>(names: impl Iterator<Item = &'a Key>) -> impl Iterator<Item = KeyName<'a>> {
    names.flat_map(|key| [key.lock_name(), key.queue()])
}

/// An attempt in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: &'a Key,
    pub(crate) ticket: &'a Ticket,
    pub(crate) ttl: Duration,
}

/// An attempt in a renewal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal<'a> {
    pub(crate) member: Member<'a>,
    /// How long a hold lasts from then on, at least. Below the TTL it is a check, which takes no
    /// time from a hold, however late it comes.
    pub(crate) least: Duration,
    /// The number of renewals in which it took part before: the server cleans another part of its
    /// queue each time.
    pub(crate) before: u32,
}

/// `word`: the word of the kind. `description`: the attempt's own, if it has one; for a candidate,
/// with its value.
pub(crate) fn acquire<'a>(
    Member { key, ticket, ttl }: Member<'a>,
    wait: Wait,
    word: &str,
    description: Option<&[u8]>,
) -> Request<'a> {
    let keys = [key.lock_name(), key.queue(), key.fence(), key.floor()];
    let word = (word != EXCLUSIVE || description.is_some()).then_some(word);
    let waits = match wait {
        Wait::Try => Some("0"),
        _ => word.and(Some("1")),
    };
    let request = with_floor(&ACQUIRE, key, &keys).arg(ticket.text()).arg(millis(ttl));
    request.arg(waits).arg(word).arg(description)
}

/// Same as [`acquire`], for all of several locks or none of them, each with its holder's
/// description; empty if it is not to be written. `first`: one of the names.
pub(crate) fn acquire_all<'a>(wishes: &[(Member<'a>, &str)], first: &'a Key) -> Request<'a> {
    let keys = of_names(wishes.iter().map(|(member, _)| member.key)).chain([first.floor()]);
    let mut request = with_floor(&ACQUIRE_ALL, first, &keys.collect::<Vec<_>>());
    for (Member { ticket, ttl, .. }, description) in wishes {
        request = request.arg(ticket.text()).arg(millis(*ttl)).arg(description);
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
    let keys = [key.lock_name(), key.queue(), key.waiting(), key.floor()];
    let request = match described && !leads {
        true => with_floor(&RELEASE, key, &keys),
        false => of_name(&RELEASE, key),
    };
    request.arg(ticket.text()).arg(leads.then_some(1))
}

/// Same as [`release`], for many attempts, each with whether it leads.
pub(crate) fn release_all<'a>(attempts: &[(Member<'a>, bool)], first: &'a Key) -> Request<'a> {
    let keys = of_names(attempts.iter().map(|(member, _)| member.key)).chain([first.floor()]);
    let mut request = with_floor(&RELEASE, first, &keys.collect::<Vec<_>>());
    for (Member { ticket, .. }, leads) in attempts {
        request = request.arg(ticket.text()).arg(u8::from(*leads));
    }
    request
}

/// `version` counts the values that this leader has published.
pub(crate) fn publish<'a>(
    Member { key, ticket, .. }: Member<'a>,
    version: u64,
    database: i64,
    value: &[u8],
) -> Request<'a> {
    of_name(&PUBLISH, key).arg(ticket.text()).arg(version).arg(database).arg(value)
}

/// `what`: `leader`; `all` for the holders of the lock, and its waiters; or `places` for a holder,
/// and the places of `attempts`.
pub(crate) fn read<'a>(key: &'a Key, what: &str, attempts: &[Ticket]) -> Request<'a> {
    of_name(&READ, key).arg(what).arg(attempts.iter().map(Ticket::text).collect::<Vec<_>>())
}

/// Renews attempts that hold `alone`, and renews or keeps alive `others`. Any attempt may be among
/// `others`.
pub(crate) fn renew<'a>(
    alone: &[Member<'a>],
    others: &[Renewal<'a>],
    first: &'a Key,
) -> Request<'a> {
    let mut keys: Vec<_> = alone.iter().map(|member| member.key.lock_name()).collect();
    keys.extend(of_names(others.iter().map(|renewal| renewal.member.key)));
    keys.push(first.floor());
    let mut request = with_floor(&ROUND, first, &keys).arg(alone.len());
    for Member { ticket, ttl, .. } in alone {
        request = request.arg(ticket.text()).arg(millis(*ttl));
    }
    for Renewal { member: Member { ticket, ttl, .. }, least, before } in others {
        request = request.arg(ticket.text()).arg(millis(*ttl)).arg(millis(*least)).arg(before);
    }
    request
}

/// Renews an attempt in one key of its name: `lock`, or `mine` if it holds it alone, `members` with
/// the lock's value as `group`, `holders`, `leader`, or `waiting`.
pub(crate) fn renew_key<'a>(
    Renewal { member: Member { key, ticket, ttl }, least, .. }: Renewal<'a>,
    what: &str,
    group: Option<&[u8]>,
) -> Request<'a> {
    let name = match what {
        "members" => key.members(),
        "holders" => key.holders(),
        "leader" => key.leader(),
        "waiting" => key.waiting(),
        _ => key.lock_name(),
    };
    let request = Request { call: Call::new(&RENEW_KEY, &[name]), key: key.lock(), floor: None };
    request.arg(ticket.text()).arg(millis(ttl)).arg(millis(least)).arg(what).arg(group)
}

/// `word`: the word of the new kind of the attempt with this token.
pub(crate) fn convert<'a>(
    Member { key, ticket, .. }: Member<'a>,
    token: FencingToken,
    word: &str,
) -> Request<'a> {
    of_name(&CONVERT, key).arg(ticket.text()).arg(token.value()).arg(word)
}

/// Gives a lock from one ticket to another. `description`: the adopting attempt's, empty if it has
/// none of its own; `None` when detaching.
pub(crate) fn detach<'a>(
    from: &[u8],
    Member { key, ticket, ttl }: Member<'a>,
    token: FencingToken,
    description: Option<&str>,
) -> Request<'a> {
    let keys = [key.lock_name(), key.fence(), key.waiting(), key.floor()];
    let request = with_floor(&DETACH, key, &keys).arg(from).arg(ticket.text());
    request.arg(millis(ttl)).arg(token.value()).arg(description)
}

pub(crate) fn revoke(key: &Key, attempt: Uuid) -> Request<'_> {
    of_name(&REVOKE, key).arg(attempt.simple().to_string())
}

/// Writes a mark that lives this long, if the attempt holds the lock alone.
pub(crate) fn mark<'a>(
    Member { key, ticket, .. }: Member<'a>,
    mark: &str,
    left: Duration,
) -> Request<'a> {
    let keys = [key.lock_name(), key.done(), key.floor()];
    with_floor(&MARK, key, &keys).arg(ticket.text()).arg(mark).arg(millis(left))
}

/// Raises the token floor to `above`, if one is given. Asks how far tokens have come.
pub(crate) fn floor(key: KeyName<'_>, above: Option<FencingToken>) -> Request<'_> {
    let call = Call::new(&FLOOR, &[key]).arg(above.map_or(0, FencingToken::value));
    // It has no name. In a cluster there is no floor.
    Request { call, key: b"", floor: Some(key) }
}
