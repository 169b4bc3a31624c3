//! The leader as the server reports it.

use std::time::Duration;

use lock_core::{FencingToken, Leader};
use redis::Value;

use crate::{
    layout::ticket::Ticket,
    wire::{
        answer::{bytes, count, number},
        snapshot::granted,
    },
};

/// The server's state of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Looked {
    /// The last token of the name.
    fence: u64,
    /// The offset that the token floor adds to the time.
    offset: Option<u64>,
    /// The server's time in microseconds.
    now: u64,
    pub(crate) state: State,
    /// When the lock's key expires unless it is renewed.
    pub(crate) ttl: Option<Duration>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// No attempt holds the lock alone.
    Vacant,
    Leads(Leader),
    /// A lock without a value: the holder's client, if it is a client of distlock, and the holder's
    /// description, if it has one of its own.
    Plain(Option<String>, Option<String>),
}

impl Looked {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [holder, Value::Int(pttl), fence, described, leads, offset, now, ..] = &parts[..]
        else {
            return None;
        };
        let (offset, now) = (count(offset), count(now)?);
        let state = match (bytes(holder), leads) {
            (None, _) => State::Vacant,
            (Some(_), Value::Array(fields)) => State::Leads(leader(fields, offset, now)?),
            (Some(ticket), _) => {
                let client = Ticket::parse(&ticket).map(|(client, _)| client.to_owned());
                let own = bytes(described).and_then(|text| {
                    Some(String::from_utf8_lossy(text.strip_prefix(&ticket[..])?).into_owned())
                });
                State::Plain(client, own)
            }
        };
        let ttl = u64::try_from(*pttl).ok().map(Duration::from_millis);
        Some(Self { fence: count(fence).unwrap_or_default(), offset, now, state, ttl })
    }

    /// Returns the holder of a lock without a value as a leader. A foreign holder has no known
    /// token: it gets the last grant's, so it comes after the last leader and before the next one.
    pub(crate) fn plain(&self, ours: bool, who: Option<String>) -> Leader {
        let holder = granted(who, ours.then_some(self.fence), self.offset, self.now);
        Leader::new(FencingToken::new(self.fence), Vec::new(), holder)
    }
}

fn leader(fields: &[Value], offset: Option<u64>, now: u64) -> Option<Leader> {
    let fields: Option<Vec<_>> = fields.iter().map(bytes).collect();
    let [token, _version, who, value] = fields?.try_into().ok()?;
    let token = number(&token)?;
    let who = Some(String::from_utf8_lossy(&who).into_owned()).filter(|who| !who.is_empty());
    let holder = granted(who, Some(token), offset, now);
    Some(Leader::new(FencingToken::new(token), value, holder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    fn looked(holder: Value, leads: Value) -> Looked {
        let now = text(b"9");
        let parts = [holder, Value::Int(-1), text(b"7"), Value::Nil, leads, text(b"0"), now];
        Looked::read(&Value::Array(parts.to_vec())).unwrap()
    }

    #[test]
    fn any_bytes_are_a_value() {
        let fields = [b"7", &b"3"[..], b"me", b"\xff\0 "].map(text);
        let seen = looked(text(b"somebody"), Value::Array(fields.to_vec()));
        let State::Leads(leader) = seen.state else { panic!("{:?}", seen.state) };
        assert_eq!((leader.token.value(), &leader.value[..]), (7, &b"\xff\0 "[..]));
        assert_eq!(leader.holder.description.as_deref(), Some("me"));
        assert_eq!(looked(Value::Nil, Value::Nil).state, State::Vacant);
    }

    #[test]
    fn a_foreign_holder_has_no_known_token() {
        let looked = looked(text(b"somebody"), Value::Nil);
        assert_eq!(looked.state, State::Plain(None, None));
        let leader = looked.plain(false, None);
        assert_eq!((leader.token.value(), leader.holder.token, looked.ttl), (7, None, None));
    }
}
