//! The three scripts, their commands and their answers.

use std::{sync::LazyLock, time::Duration};

use lock_core::Request;
use redis::Value;
use uuid::Uuid;

use super::vote::{EVERY_BALLOT, Vote};
use crate::{
    layout::key::Key,
    wire::{
        answer::{bytes, int, number},
        call::{Call, millis},
        lua::Lua,
    },
};

static ACQUIRE: LazyLock<Lua> = LazyLock::new(|| Lua::new(include_str!("scripts/acquire.lua")));
static RENEW: LazyLock<Lua> = LazyLock::new(|| Lua::new(include_str!("scripts/renew.lua")));
static RELEASE: LazyLock<Lua> = LazyLock::new(|| Lua::new(include_str!("scripts/release.lua")));

pub(super) fn all() -> [&'static Lua; 3] {
    [&ACQUIRE, &RENEW, &RELEASE]
}

/// Asks for a vote. The node keeps `candidate` if it is above its last token.
pub(super) fn acquire(key: &Key, request: &Request, vote: &Vote, candidate: u64) -> Call {
    let call = Call::new(&ACQUIRE, &[key.lock_name(), key.fence()]).arg(id(vote.attempt));
    call.arg(vote.ballot).arg(millis(request.ttl)).arg(candidate).arg(vote.text())
}

/// Renews a vote.
pub(super) fn renew(key: &Key, attempt: Uuid, ttl: Duration) -> Call {
    Call::new(&RENEW, &[key.lock_name(), key.fence()]).arg(id(attempt)).arg(millis(ttl))
}

/// Takes a vote back; without a ballot, whatever its ballot is.
pub(super) fn release(key: &Key, attempt: Uuid, ballot: Option<u64>) -> Call {
    Call::new(&RELEASE, &[key.lock_name()]).arg(id(attempt)).arg(ballot.unwrap_or(EVERY_BALLOT))
}

/// Whether it may be sent again, after later requests: it makes no vote.
pub(super) fn may_come_late(call: &Call) -> bool {
    !call.calls(&ACQUIRE)
}

fn id(attempt: Uuid) -> String {
    attempt.simple().to_string()
}

/// A node's answer to a request for its vote.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// It votes for this attempt. Its last token before.
    Yes { fence: u64 },
    /// It has voted for another attempt, or a foreign client has its key: then there is no attempt.
    No { fence: u64, attempt: Option<Uuid> },
}

/// Reads the answer of the script acquire.
pub(super) fn voted(value: &Value) -> Option<Answer> {
    let Value::Array(parts) = value else { return None };
    let fence = number(&bytes(parts.get(1)?)?)?;
    match int(parts.first()?)? {
        1 => Some(Answer::Yes { fence }),
        _ => {
            let vote = Vote::read(&bytes(parts.get(3)?)?);
            Some(Answer::No { fence, attempt: vote.map(|vote| vote.attempt) })
        }
    }
}

/// A node's answer to a renewal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Renewed {
    /// Its last token, which is this lock's.
    Yes { fence: u64 },
    /// It has no vote for any attempt.
    Free,
    /// It has voted for another attempt.
    Other,
}

/// Reads the answer of the script renew.
pub(super) fn renewed(value: &Value) -> Option<Renewed> {
    let Value::Array(parts) = value else { return None };
    match int(parts.first()?)? {
        1 => Some(Renewed::Yes { fence: number(&bytes(parts.get(1)?)?)? }),
        0 => Some(Renewed::Free),
        _ => Some(Renewed::Other),
    }
}

/// Reads the answer of the script release: whether there was a vote.
pub(super) fn released(value: &Value) -> Option<bool> {
    int(value).map(|votes| votes == 1)
}
