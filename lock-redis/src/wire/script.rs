//! The scripts, and the commands that call them.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use lock_core::{FencingToken, Kind, Wait};
use redis::{Arg, Cmd};
use uuid::Uuid;

use crate::{
    config::Mode,
    layout::{
        key::{FLOOR as FLOOR_KEY, Key},
        kind,
        ticket::Ticket,
    },
};

/// A script and the hash by which the server knows it.
pub(crate) struct Lua {
    code: &'static str,
    hash: String,
}

impl Lua {
    fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
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
script!(
    RELEASE,
    "release.lua",
    "queue.lua",
    "leader.lua",
    "group.lua",
    "leave.lua",
    "leave_one.lua"
);
script!(ACQUIRE_ALL, "queue.lua", "leader.lua", "group.lua", "acquire_all.lua");
script!(JOIN, "queue.lua", "leader.lua", "group.lua", "join.lua");
script!(CAMPAIGN, "queue.lua", "leader.lua", "group.lua", "campaign.lua");
script!(RESIGN, "resign.lua", "queue.lua", "leader.lua", "group.lua", "leave.lua", "leave_one.lua");
script!(RELEASE_ALL, "queue.lua", "leader.lua", "group.lua", "leave.lua", "release_all.lua");
script!(PUBLISH, "queue.lua", "leader.lua", "publish.lua");
script!(OBSERVE, "queue.lua", "leader.lua", "group.lua", "observe.lua");
script!(ROUND, "queue.lua", "leader.lua", "group.lua", "round.lua");
script!(DOWNGRADE, "queue.lua", "leader.lua", "group.lua", "downgrade.lua");
script!(UPGRADE, "queue.lua", "leader.lua", "group.lua", "upgrade.lua");
script!(REVOKE, "queue.lua", "leader.lua", "group.lua", "revoke.lua");
script!(HAND_OVER, "hand_over.lua");
script!(INSPECT, "queue.lua", "leader.lua", "group.lua", "snapshot.lua", "inspect.lua");
script!(DIAGNOSE, "queue.lua", "leader.lua", "group.lua", "snapshot.lua", "diagnose.lua");
script!(FLOOR, "floor.lua");
script!(SIMPLE_ACQUIRE, "simple_acquire.lua");
script!(SIMPLE_RELEASE, "simple_release.lua");
script!(SIMPLE_RELEASE_ALL, "simple_release_all.lua");

/// The scripts of a lock that is free: to be loaded when a connection is made.
pub(crate) fn usual(mode: Mode) -> [&'static Lua; 3] {
    match mode {
        Mode::Queue => [&ACQUIRE, &RELEASE, &ROUND],
        Mode::Simple => [&SIMPLE_ACQUIRE, &SIMPLE_RELEASE, &ROUND],
    }
}

fn all() -> [&'static Lua; 20] {
    [
        &ACQUIRE,
        &RELEASE,
        &ROUND,
        &JOIN,
        &CAMPAIGN,
        &RESIGN,
        &RELEASE_ALL,
        &ACQUIRE_ALL,
        &PUBLISH,
        &OBSERVE,
        &DOWNGRADE,
        &UPGRADE,
        &REVOKE,
        &HAND_OVER,
        &INSPECT,
        &DIAGNOSE,
        &FLOOR,
        &SIMPLE_ACQUIRE,
        &SIMPLE_RELEASE,
        &SIMPLE_RELEASE_ALL,
    ]
}

/// The script that a command calls.
pub(crate) fn called(command: &Cmd) -> Option<&'static Lua> {
    match command.args_iter().nth(1)? {
        Arg::Simple(hash) => all().into_iter().find(|script| script.hash.as_bytes() == hash),
        _ => None,
    }
}

/// The key of the token floor, if the command calls a script that has it.
pub(crate) fn floor_in(command: &Cmd) -> Option<&[u8]> {
    called(command)?;
    let simple = |arg| match arg {
        Arg::Simple(bytes) => Some(bytes),
        _ => None,
    };
    let keys = simple(command.args_iter().nth(2)?)?;
    let keys: usize = std::str::from_utf8(keys).ok()?.parse().ok()?;
    let last = simple(command.args_iter().nth(2 + keys)?)?;
    last.ends_with(FLOOR_KEY).then_some(last)
}

fn command(script: &Lua, keys: usize, arguments: usize, bytes: usize) -> Cmd {
    let mut command = Cmd::with_capacity(3 + arguments, 50 + bytes);
    command.arg("EVALSHA").arg(&script.hash).arg(keys);
    command
}

/// The last key of a script that may grant. Those of one client have it in common.
fn floor_of(command: &mut Cmd, any: Option<&Key>) {
    match any {
        Some(key) => command.arg(key.floor()),
        None => command.arg(b""),
    };
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
    let mut command = command(&ACQUIRE, 4, 8, 4 * key.lock().len() + 100);
    command.arg(key.lock()).arg(key.queue()).arg(key.fence()).arg(key.floor());
    command.arg(ticket.text()).arg(millis(ttl));
    if wait == Wait::Try || holder.is_some() {
        command.arg(if wait == Wait::Try { b"0" } else { b"1" });
    }
    if let Some(holder) = holder {
        command.arg(holder);
    }
    command
}

/// [`acquire`] of several locks, or of none. `holders`: what each holder says about itself, empty
/// if it is not to be written.
pub(crate) fn acquire_all(members: &[Member<'_>], holders: &[Arc<str>]) -> Cmd {
    let mut command =
        command(&ACQUIRE_ALL, 2 * members.len() + 1, 5 * members.len() + 1, 160 * members.len());
    for (key, ..) in members {
        command.arg(key.lock()).arg(key.queue());
    }
    floor_of(&mut command, members.first().map(|(key, ..)| *key));
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
    let mut command = command(&JOIN, 3, 8, 3 * key.lock().len() + 120);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor()).arg(ticket.text()).arg(millis(ttl));
    command.arg(if wait == Wait::Try { b"0" } else { b"1" }).arg(&*kind::word(kind));
    if let Some(holder) = holder {
        command.arg(holder);
    }
    command
}

/// `described` if the holder has given a description of its own, which is to be removed too.
pub(crate) fn release(key: &Key, ticket: &Ticket, described: bool) -> Cmd {
    let mut command = command(&RELEASE, 3 + usize::from(described), 5, 4 * key.lock().len() + 80);
    command.arg(key.lock()).arg(key.queue());
    if described {
        command.arg(key.waiting());
    }
    command.arg(key.floor()).arg(ticket.text());
    command
}

/// [`release`], [`resign`] or [`simple_release`] of many, each with whether it leads.
pub(crate) fn release_all<'a>(
    mode: Mode,
    attempts: impl ExactSizeIterator<Item = (&'a Key, &'a Ticket, bool)> + Clone,
) -> Cmd {
    let simple = mode == Mode::Simple;
    let (script, each) = if simple { (&SIMPLE_RELEASE_ALL, 1) } else { (&RELEASE_ALL, 2) };
    let count = attempts.len();
    let floor = usize::from(!simple);
    let mut command = command(script, each * count + floor, 2 * each * count + floor, 160 * count);
    for (key, ..) in attempts.clone() {
        command.arg(key.lock());
        if !simple {
            command.arg(key.queue());
        }
    }
    if !simple {
        floor_of(&mut command, attempts.clone().next().map(|(key, ..)| key));
    }
    for (_, ticket, leads) in attempts {
        command.arg(ticket.text());
        if !simple {
            command.arg(u8::from(leads));
        }
    }
    command
}

/// [`acquire`] of a candidate. `word`: its kind's; `said`: what it says about itself, and its
/// value.
pub(crate) fn campaign(
    key: &Key,
    ticket: &Ticket,
    ttl: Duration,
    wait: Wait,
    word: &str,
    said: &[u8],
) -> Cmd {
    let mut command = command(&CAMPAIGN, 3, 8, 3 * key.lock().len() + 120 + said.len());
    command.arg(key.lock()).arg(key.queue()).arg(key.floor()).arg(ticket.text()).arg(millis(ttl));
    command.arg(if wait == Wait::Try { b"0" } else { b"1" }).arg(word).arg(said);
    command
}

/// [`release`] of a candidate.
pub(crate) fn resign(key: &Key, ticket: &Ticket) -> Cmd {
    let mut command = command(&RESIGN, 3, 5, 3 * key.lock().len() + 80);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor()).arg(ticket.text()).arg("resign");
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
    let mut command = command(&PUBLISH, 3, 7, 4 * key.lock().len() + 120 + value.len());
    command.arg(key.lock()).arg(key.queue()).arg(key.floor()).arg(ticket.text());
    command.arg(version).arg(database).arg(value);
    command
}

pub(crate) fn observe(key: &Key) -> Cmd {
    let mut command = command(&OBSERVE, 3, 3, 4 * key.lock().len() + 40);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor());
    command
}

pub(crate) fn simple_acquire(key: &Key, ticket: &Ticket, ttl: Duration) -> Cmd {
    let mut command = command(&SIMPLE_ACQUIRE, 3, 5, 2 * key.lock().len() + 70);
    command.arg(key.lock()).arg(key.fence()).arg(key.floor()).arg(ticket.text()).arg(millis(ttl));
    command
}

pub(crate) fn simple_release(key: &Key, ticket: &Ticket) -> Cmd {
    let mut command = command(&SIMPLE_RELEASE, 1, 2, key.lock().len() + 50);
    command.arg(key.lock()).arg(ticket.text());
    command
}

pub(crate) type Member<'a> = (&'a Key, &'a Ticket, Duration);
/// A member, and in how many renewals it took part.
pub(crate) type Turn<'a> = (Member<'a>, u32);

/// Renews attempts that hold `alone`, and renews or keeps alive `others`, each with its turn; an
/// attempt may always be among these.
pub(crate) fn renew(alone: &[Member<'_>], others: &[Turn<'_>]) -> Cmd {
    let members = alone.len() + others.len();
    let mut command =
        command(&ROUND, alone.len() + 2 * others.len() + 1, 2 + 5 * members, 130 * members);
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

pub(crate) fn downgrade(key: &Key, ticket: &Ticket, token: FencingToken) -> Cmd {
    convert(&DOWNGRADE, key, ticket, token)
}

pub(crate) fn upgrade(key: &Key, ticket: &Ticket, token: FencingToken) -> Cmd {
    convert(&UPGRADE, key, ticket, token)
}

fn convert(script: &Lua, key: &Key, ticket: &Ticket, token: FencingToken) -> Cmd {
    let mut command = command(script, 3, 5, 3 * key.lock().len() + 90);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor()).arg(ticket.text()).arg(token.value());
    command
}

/// Gives a lock from an attempt to another one. `said`: what who adopts it says about itself, if
/// that is not what its client says.
pub(crate) fn hand_over(
    key: &Key,
    from: &[u8],
    to: &Ticket,
    ttl: Duration,
    token: FencingToken,
    said: Option<&str>,
) -> Cmd {
    // Without a queue there is no place for what a holder says.
    let queues = to.text().len() > Ticket::SIMPLE;
    let arguments = 7 + usize::from(queues) + usize::from(said.is_some());
    let bytes = 5 * key.lock().len() + 210 + said.map_or(0, str::len);
    let mut command = command(&HAND_OVER, 3 + usize::from(queues), arguments, bytes);
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
    let mut command = command(&REVOKE, 3, 4, 3 * key.lock().len() + 60);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor());
    command.arg(attempt.simple().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    command
}

pub(crate) fn inspect(key: &Key) -> Cmd {
    let mut command = command(&INSPECT, 3, 3, 4 * key.lock().len() + 40);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor());
    command
}

/// `attempts`: whose places are asked for.
pub(crate) fn diagnose(key: &Key, attempts: &[Ticket]) -> Cmd {
    let bytes = 4 * key.lock().len() + 40 + 56 * attempts.len();
    let mut command = command(&DIAGNOSE, 3, 3 + attempts.len(), bytes);
    command.arg(key.lock()).arg(key.queue()).arg(key.floor());
    for attempt in attempts {
        command.arg(attempt.text());
    }
    command
}

/// Raises the token floor to `above`, if one is given, and tells how far tokens have come.
pub(crate) fn floor(key: &[u8], above: Option<FencingToken>) -> Cmd {
    let mut command = command(&FLOOR, 1, 2, key.len() + 40);
    command.arg(key).arg(above.map_or(0, FencingToken::value));
    command
}
