//! The scripts, the commands that call them, and what they answer.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use lock_core::{Error, FencingToken, Kind, Wait};
use redis::{Cmd, Value};
use uuid::Uuid;

use crate::{error, key::Key, kind};

/// A script and the hash by which the server knows it.
pub(crate) struct Lua {
    code: &'static str,
    hash: String,
}

impl Lua {
    fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// The command that gives the script to the server.
    pub(crate) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.code);
        command
    }
}

macro_rules! script {
    ($name:ident, $($part:literal),+) => {
        static $name: LazyLock<Lua> =
            LazyLock::new(|| Lua::new(concat!($(include_str!(concat!("scripts/", $part))),+)));
    };
}

script!(ACQUIRE, "acquire.lua", "queue.lua", "leader.lua", "group.lua", "wait.lua");
script!(RELEASE, "release.lua", "queue.lua", "leader.lua", "group.lua", "leave.lua");
script!(ACQUIRE_ALL, "queue.lua", "leader.lua", "group.lua", "acquire_all.lua");
script!(JOIN, "queue.lua", "leader.lua", "group.lua", "join.lua");
script!(CAMPAIGN, "queue.lua", "leader.lua", "group.lua", "campaign.lua");
script!(RESIGN, "resign.lua", "queue.lua", "leader.lua", "group.lua", "leave.lua");
script!(PUBLISH, "queue.lua", "leader.lua", "publish.lua");
script!(OBSERVE, "queue.lua", "leader.lua", "group.lua", "observe.lua");
script!(ROUND, "queue.lua", "leader.lua", "group.lua", "round.lua");
script!(DOWNGRADE, "queue.lua", "leader.lua", "group.lua", "downgrade.lua");
script!(UPGRADE, "queue.lua", "leader.lua", "group.lua", "upgrade.lua");
script!(REVOKE, "queue.lua", "leader.lua", "group.lua", "revoke.lua");
script!(INSPECT, "queue.lua", "leader.lua", "group.lua", "inspect.lua");
script!(SIMPLE_ACQUIRE, "simple_acquire.lua");
script!(SIMPLE_RELEASE, "simple_release.lua");
script!(SWEEP, "sweep.lua");

/// All scripts, to be loaded when a connection is made.
pub(crate) fn all() -> [&'static Lua; 16] {
    [
        &ACQUIRE,
        &ACQUIRE_ALL,
        &RELEASE,
        &JOIN,
        &CAMPAIGN,
        &RESIGN,
        &PUBLISH,
        &OBSERVE,
        &ROUND,
        &DOWNGRADE,
        &UPGRADE,
        &REVOKE,
        &INSPECT,
        &SIMPLE_ACQUIRE,
        &SIMPLE_RELEASE,
        &SWEEP,
    ]
}

/// What an attempt writes into the lock's key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) attempt: Uuid,
    text: [u8; Self::CLIENT + 33],
    start: u8,
}

impl Ticket {
    /// The length of a client's id: 16 hex digits.
    pub(crate) const CLIENT: usize = 16;

    /// A ticket that says whom to tell about a grant.
    pub(crate) fn queued(client: &str, attempt: Uuid) -> Self {
        let mut ticket = Self::simple(attempt);
        for (to, from) in ticket.text.iter_mut().zip(client.bytes()) {
            *to = from;
        }
        Self { start: 0, ..ticket }
    }

    /// A ticket without a client, which looks foreign to clients that queue: its owner cannot be told
    /// anything, and its release tells nobody.
    pub(crate) fn simple(attempt: Uuid) -> Self {
        let mut text = [b':'; Self::CLIENT + 33];
        attempt.simple().encode_lower(&mut text[Self::CLIENT + 1..]);
        Self { attempt, text, start: 16 }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text[usize::from(self.start)..]
    }

    /// Takes a ticket's text apart: client, empty if it is a simple one, and attempt.
    pub(crate) fn parse(text: &[u8]) -> Option<(&str, Uuid)> {
        let (client, attempt) = std::str::from_utf8(text).ok()?.split_once(':')?;
        let ours = [0, Self::CLIENT].contains(&client.len()) && attempt.len() == 32;
        ours.then_some((client, Uuid::try_parse(attempt).ok()?))
    }
}

/// What ACQUIRE answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Acquired {
    Granted(u64),
    Busy,
    Waits(Waits),
    /// Others count with this many permits.
    OtherLimit(u32),
}

/// What the server says to an attempt that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Waits {
    /// The last token of the name: a grant that is older than this answer has no greater one.
    pub(crate) fence: u64,
    /// When what is in the way ends unless it is renewed; `None` if never.
    pub(crate) pttl: Option<Duration>,
    /// The place in the queue if it is known; 1 is next.
    pub(crate) place: Option<usize>,
    /// Whether the holder's release tells nobody.
    pub(crate) foreign: bool,
}

/// What ROUND answers for an attempt that waits, or does not hold alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    Gone,
    Waits(Waits),
    Holds(u64),
}

fn command(script: &Lua, keys: usize, arguments: usize, bytes: usize) -> Cmd {
    let mut command = Cmd::with_capacity(3 + arguments, 50 + bytes);
    command.arg("EVALSHA").arg(&script.hash).arg(keys);
    command
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn acquire(
    key: &Key,
    ticket: &Ticket,
    ttl: Duration,
    wait: Wait,
    holder: Option<&str>,
) -> Cmd {
    let mut command = command(&ACQUIRE, 3, 7, 4 * key.lock().len() + 100);
    command.arg(key.lock()).arg(key.queue()).arg(key.fence());
    command.arg(ticket.text()).arg(millis(ttl));
    if wait == Wait::Try || holder.is_some() {
        command.arg(if wait == Wait::Try { b"0" } else { b"1" });
    }
    if let Some(holder) = holder {
        command.arg(holder);
    }
    command
}

/// [`acquire`] of several locks, or of none. `holders`: what each holder says about itself, empty if it is
/// not to be written.
pub(crate) fn acquire_all(members: &[Member<'_>], holders: &[Arc<str>]) -> Cmd {
    let mut command =
        command(&ACQUIRE_ALL, 2 * members.len(), 5 * members.len(), 160 * members.len());
    for (key, ..) in members {
        command.arg(key.lock()).arg(key.queue());
    }
    for ((_, ticket, ttl), holder) in members.iter().zip(holders) {
        command.arg(ticket.text()).arg(millis(*ttl)).arg(&**holder);
    }
    command
}

/// [`acquire`] of what others may hold too.
pub(crate) fn join(
    key: &Key,
    ticket: &Ticket,
    ttl: Duration,
    kind: Kind,
    wait: Wait,
    holder: Option<&str>,
) -> Cmd {
    let mut command = command(&JOIN, 2, 7, 3 * key.lock().len() + 120);
    command.arg(key.lock()).arg(key.queue()).arg(ticket.text()).arg(millis(ttl));
    command.arg(if wait == Wait::Try { b"0" } else { b"1" }).arg(&*kind::word(kind));
    if let Some(holder) = holder {
        command.arg(holder);
    }
    command
}

/// `described` if the holder has given a description of its own, which is to be removed too.
pub(crate) fn release(key: &Key, ticket: &Ticket, described: bool) -> Cmd {
    let mut command = command(&RELEASE, 2 + usize::from(described), 4, 4 * key.lock().len() + 80);
    command.arg(key.lock()).arg(key.queue());
    if described {
        command.arg(key.waiting());
    }
    command.arg(ticket.text());
    command
}

/// [`acquire`] of a candidate. `word`: its kind's; `said`: what it says about itself, and its value.
pub(crate) fn campaign(
    key: &Key,
    ticket: &Ticket,
    ttl: Duration,
    wait: Wait,
    word: &str,
    said: &[u8],
) -> Cmd {
    let mut command = command(&CAMPAIGN, 2, 7, 3 * key.lock().len() + 120 + said.len());
    command.arg(key.lock()).arg(key.queue()).arg(ticket.text()).arg(millis(ttl));
    command.arg(if wait == Wait::Try { b"0" } else { b"1" }).arg(word).arg(said);
    command
}

/// [`release`] of a candidate.
pub(crate) fn resign(key: &Key, ticket: &Ticket) -> Cmd {
    let mut command = command(&RESIGN, 2, 4, 3 * key.lock().len() + 80);
    command.arg(key.lock()).arg(key.queue()).arg(ticket.text()).arg("resign");
    command
}

/// `version` counts what this leader has published.
pub(crate) fn publish(
    key: &Key,
    ticket: &Ticket,
    version: u64,
    database: i64,
    value: &[u8],
) -> Cmd {
    let mut command = command(&PUBLISH, 2, 6, 3 * key.lock().len() + 110 + value.len());
    command.arg(key.lock()).arg(key.queue()).arg(ticket.text());
    command.arg(version).arg(database).arg(value);
    command
}

pub(crate) fn observe(key: &Key) -> Cmd {
    let mut command = command(&OBSERVE, 2, 2, 3 * key.lock().len() + 30);
    command.arg(key.lock()).arg(key.queue());
    command
}

pub(crate) fn simple_acquire(key: &Key, ticket: &Ticket, ttl: Duration) -> Cmd {
    let mut command = command(&SIMPLE_ACQUIRE, 2, 4, 2 * key.lock().len() + 70);
    command.arg(key.lock()).arg(key.fence()).arg(ticket.text()).arg(millis(ttl));
    command
}

pub(crate) fn simple_release(key: &Key, ticket: &Ticket) -> Cmd {
    let mut command = command(&SIMPLE_RELEASE, 1, 2, key.lock().len() + 50);
    command.arg(key.lock()).arg(ticket.text());
    command
}

pub(crate) type Member<'a> = (&'a Key, &'a Ticket, Duration);

/// Renews attempts that hold `alone`, and renews or keeps alive `others`; an attempt may always be
/// among these.
pub(crate) fn round(alone: &[Member<'_>], others: &[Member<'_>]) -> Cmd {
    let members = alone.len() + others.len();
    let mut command =
        command(&ROUND, alone.len() + 2 * others.len(), 1 + 4 * members, 128 * members);
    for (key, ..) in alone {
        command.arg(key.lock());
    }
    for (key, ..) in others {
        command.arg(key.lock()).arg(key.queue());
    }
    command.arg(alone.len());
    for (_, ticket, ttl) in alone.iter().chain(others) {
        command.arg(ticket.text()).arg(millis(*ttl));
    }
    command
}

pub(crate) fn downgrade(key: &Key, ticket: &Ticket, token: FencingToken) -> Cmd {
    convert(&DOWNGRADE, key, ticket, token)
}

pub(crate) fn upgrade(key: &Key, ticket: &Ticket, token: FencingToken) -> Cmd {
    convert(&UPGRADE, key, ticket, token)
}

fn convert(script: &Lua, key: &Key, ticket: &Ticket, token: FencingToken) -> Cmd {
    let mut command = command(script, 2, 4, 3 * key.lock().len() + 90);
    command.arg(key.lock()).arg(key.queue()).arg(ticket.text()).arg(token.value());
    command
}

pub(crate) fn revoke(key: &Key, attempt: Uuid) -> Cmd {
    let mut command = command(&REVOKE, 2, 3, 3 * key.lock().len() + 60);
    command.arg(key.lock()).arg(key.queue());
    command.arg(attempt.simple().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    command
}

pub(crate) fn inspect(key: &Key) -> Cmd {
    let mut command = command(&INSPECT, 2, 2, 3 * key.lock().len() + 30);
    command.arg(key.lock()).arg(key.queue());
    command
}

pub(crate) fn sweep(fence: &[u8], lock: &[u8], older_than: Duration) -> Cmd {
    let mut command = command(&SWEEP, 2, 3, fence.len() + lock.len() + 20);
    command.arg(lock).arg(fence).arg(millis(older_than));
    command
}

/// # Errors
///
/// [`Error::Rejected`] if the script did not answer as it is written.
pub(crate) fn acquired(value: &Value) -> Result<Acquired, Error> {
    match value {
        Value::Int(0) => Ok(Acquired::Busy),
        Value::Int(limit @ ..0) => {
            let found = u32::try_from(limit.unsigned_abs()).unwrap_or(u32::MAX);
            Ok(Acquired::OtherLimit(found))
        }
        Value::Int(token) => Ok(Acquired::Granted(token.unsigned_abs())),
        Value::BulkString(digits) => {
            let token = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            token.map(Acquired::Granted).ok_or_else(|| error::unexpected("acquire", value))
        }
        Value::Array(parts) => match numbers(parts).as_deref() {
            Some([fence, pttl, place, foreign]) => Ok(Acquired::Waits(waits(
                *fence,
                *pttl,
                usize::try_from(*place).ok(),
                *foreign > 0,
            ))),
            _ => Err(error::unexpected("acquire", value)),
        },
        _ => Err(error::unexpected("acquire", value)),
    }
}

/// The tokens of several locks; `None` if one was busy.
///
/// # Errors
///
/// [`Error::Rejected`] if the script did not answer as it is written.
pub(crate) fn acquired_all(value: &Value) -> Result<Option<Vec<u64>>, Error> {
    let tokens = match value {
        Value::Int(0) => return Ok(None),
        Value::Array(parts) => numbers(parts),
        _ => None,
    };
    let tokens = tokens.ok_or_else(|| error::unexpected("acquire", value))?;
    Ok(Some(tokens.into_iter().map(i64::unsigned_abs).collect()))
}

/// Per attempt that holds alone whether it was renewed, and what was seen of each other one.
///
/// # Errors
///
/// [`Error::Rejected`] if the script did not answer as it is written.
pub(crate) fn rounded(value: &Value, held: usize) -> Result<(Vec<bool>, Vec<Seen>), Error> {
    let answer = match value {
        Value::Array(parts) => numbers(parts),
        _ => None,
    };
    let answer = answer
        .filter(|answer| answer.len() >= held)
        .ok_or_else(|| error::unexpected("renew", value))?;
    let (renewed, seen) = answer.split_at(held);
    Ok((renewed.iter().map(|n| *n == 1).collect(), seen.chunks_exact(4).map(seen_in).collect()))
}

fn seen_in(four: &[i64]) -> Seen {
    match *four {
        [3, token, ..] => Seen::Holds(token.unsigned_abs()),
        [state @ (1 | 2), fence, pttl, first] => {
            Seen::Waits(waits(fence, pttl, (first == 1).then_some(1), state == 2))
        }
        _ => Seen::Gone,
    }
}

fn waits(fence: i64, pttl: i64, place: Option<usize>, foreign: bool) -> Waits {
    let pttl = u64::try_from(pttl).ok().map(Duration::from_millis);
    Waits { fence: fence.unsigned_abs(), pttl, place, foreign }
}

fn numbers(parts: &[Value]) -> Option<Vec<i64>> {
    let number = |part: &Value| match part {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    parts.iter().map(number).collect()
}

/// What a push says about an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Push {
    Granted(u64),
    Gone,
}

/// Reads a push: a token or `gone`, the attempt, and the lock's key.
pub(crate) fn push(payload: &[u8]) -> Option<(Push, Uuid)> {
    let mut parts = payload.splitn(3, |b| *b == b' ').map(std::str::from_utf8);
    let push = match parts.next()?.ok()? {
        "gone" => Push::Gone,
        token => Push::Granted(token.parse().ok()?),
    };
    let attempt = Uuid::try_parse(parts.next()?.ok()?).ok()?;
    Some((push, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_are_told_apart() {
        let attempt = Uuid::new_v4();
        let id = attempt.simple();
        assert_eq!(push(format!("7 {id} a b").as_bytes()), Some((Push::Granted(7), attempt)));
        assert_eq!(push(format!("gone {id} a b").as_bytes()), Some((Push::Gone, attempt)));
        for odd in ["", "gone", "7", "7 8", "x 8 9"] {
            assert_eq!(push(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn tickets_are_read_as_they_are_written() {
        let (client, attempt) = ("0123456789abcdef", Uuid::new_v4());
        let queued = Ticket::queued(client, attempt);
        assert_eq!(Ticket::parse(queued.text()), Some((client, attempt)));
        assert_eq!(Ticket::parse(Ticket::simple(attempt).text()), Some(("", attempt)));
        for odd in [attempt.simple().to_string(), format!(":{attempt}"), format!("x:{attempt}")] {
            assert_eq!(Ticket::parse(odd.as_bytes()), None, "{odd}");
        }
    }
}
