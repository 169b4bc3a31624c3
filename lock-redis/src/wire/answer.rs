//! Answers of the scripts, and pushes. A reader returns `None` for an answer that its script cannot
//! give.

use std::time::Duration;

use redis::Value;
use uuid::Uuid;

/// The answer of ACQUIRE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Acquired {
    Granted(u64),
    Busy,
    Waits(Waits),
    /// The other attempts name this limit of permits.
    OtherLimit(u32),
}

/// The server's answer to an attempt that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Waits {
    /// The last token of the name. A grant before this answer has no greater token.
    pub(crate) fence: u64,
    /// Time until the obstacle ends unless it is renewed; `None` if never.
    pub(crate) pttl: Option<Duration>,
    /// The place in the queue, if it is known; 1 is next.
    pub(crate) place: Option<usize>,
    /// A mark that tells foreign holders apart; `None` if the holder is not foreign. A foreign
    /// release sends no push.
    pub(crate) foreign: Option<u64>,
}

/// The answer of ROUND for an attempt that waits, or does not hold alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AttemptState {
    Gone,
    Waits(Waits),
    Holds(u64),
    /// The script failed for its name. What became of it is not known.
    Failed,
}

pub(crate) fn acquired(value: &Value) -> Option<Acquired> {
    match value {
        Value::Int(0) => Some(Acquired::Busy),
        Value::Int(limit @ ..0) => {
            let found = u32::try_from(limit.unsigned_abs()).unwrap_or(u32::MAX);
            Some(Acquired::OtherLimit(found))
        }
        Value::Int(token) => Some(Acquired::Granted(token.unsigned_abs())),
        Value::BulkString(digits) => number(digits).map(Acquired::Granted),
        _ => {
            let [fence, pttl, place, foreign] = numbers(value)?.try_into().ok()?;
            Some(Acquired::Waits(waits(fence, pttl, usize::try_from(place).ok(), foreign)))
        }
    }
}

/// Reads the tokens of several locks; `Some(None)` if one was busy.
pub(crate) fn acquired_all(value: &Value) -> Option<Option<Vec<u64>>> {
    if let Value::Int(0) = value {
        return Some(None);
    }
    Some(Some(numbers(value)?.into_iter().map(i64::unsigned_abs).collect()))
}

/// Reads per attempt that holds alone whether it was renewed, and for each other one its state.
pub(crate) fn renewed(value: &Value, held: usize) -> Option<(Vec<bool>, Vec<AttemptState>)> {
    let answer = numbers(value)?;
    let (renewed, states) = answer.split_at_checked(held)?;
    Some((
        renewed.iter().map(|n| *n == 1).collect(),
        states.chunks_exact(4).map(state_in).collect(),
    ))
}

/// Reads per attempt whether it is gone.
pub(crate) fn released(value: &Value, count: usize) -> Option<Vec<bool>> {
    if let (Value::Int(_), 1) = (value, count) {
        // The answer for a single attempt says whether it held. It is gone in both cases.
        return Some(vec![true]);
    }
    let answer = numbers(value).filter(|answer| answer.len() == count)?;
    Some(answer.into_iter().map(|gone| gone == 1).collect())
}

fn state_in(four: &[i64]) -> AttemptState {
    match *four {
        [3, token, ..] => AttemptState::Holds(token.unsigned_abs()),
        [0, ..] => AttemptState::Gone,
        [2, ..] => AttemptState::Failed,
        [state @ ..=1, fence, pttl, first] => {
            let mark = if state < 0 { -state } else { 0 };
            AttemptState::Waits(waits(fence, pttl, (first == 1).then_some(1), mark))
        }
        _ => AttemptState::Gone,
    }
}

fn waits(fence: i64, pttl: i64, place: Option<usize>, mark: i64) -> Waits {
    let pttl = u64::try_from(pttl).ok().map(Duration::from_millis);
    let foreign = u64::try_from(mark).ok().filter(|mark| *mark > 0);
    Waits { fence: fence.unsigned_abs(), pttl, place, foreign }
}

pub(crate) fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

pub(crate) fn numbers(list: &Value) -> Option<Vec<i64>> {
    let Value::Array(parts) = list else { return None };
    parts.iter().map(int).collect()
}

pub(crate) fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::SimpleString(text) => Some(text.clone().into_bytes()),
        _ => None,
    }
}

/// Reads a text of several lines, as `INFO` gives it.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::VerbatimString { text, .. } => text.clone(),
        value => String::from_utf8_lossy(&bytes(value).unwrap_or_default()).into_owned(),
    }
}

pub(crate) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a number that the server sends as text.
pub(crate) fn count(value: &Value) -> Option<u64> {
    number(&bytes(value)?)
}

/// The content of a push about an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Push {
    Granted(u64),
    Gone,
    /// The first in line is another one than before.
    First,
}

/// Reads a push: a token, `gone` or `first`, the attempt, and the lock's key.
pub(crate) fn push(payload: &[u8]) -> Option<(Push, Uuid, &[u8])> {
    let mut parts = payload.splitn(3, |b| *b == b' ');
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let push = match word()? {
        "gone" => Push::Gone,
        "first" => Push::First,
        token => Push::Granted(token.parse().ok()?),
    };
    let attempt = Uuid::try_parse(word()?).ok()?;
    Some((push, attempt, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_are_told_apart() {
        let attempt = Uuid::new_v4();
        let id = attempt.simple();
        let lock = &b"a b"[..];
        assert_eq!(push(format!("7 {id} a b").as_bytes()), Some((Push::Granted(7), attempt, lock)));
        assert_eq!(push(format!("gone {id} a b").as_bytes()), Some((Push::Gone, attempt, lock)));
        assert_eq!(push(format!("first {id} a b").as_bytes()), Some((Push::First, attempt, lock)));
        let short = format!("7 {id}");
        for odd in ["", "gone", "7", "7 8", "x 8 9", &short] {
            assert_eq!(push(odd.as_bytes()), None, "{odd}");
        }
    }
}
