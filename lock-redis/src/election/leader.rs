//! The leader as the server reports it, and what an observer does about a report.

use std::time::{Duration, SystemTime};

use lock_core::{FencingToken, Leader, wall_clock};
use redis::Value;

use crate::{
    layout::ticket::Ticket,
    wire::{
        answer::{bytes, count, number},
        snapshot::granted,
    },
};

/// The most that a server's clock may be ahead of this process's.
const MOST_AHEAD: Duration = Duration::from_secs(60);

/// A push about an election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    Leads(Leads),
    /// The leader with this token does not lead any more, and there is no other leader.
    Gone(u64),
}

/// A leader with a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Leads {
    pub(crate) leader: Leader,
    /// Number of changes of the value.
    version: u64,
    /// Time until its leadership ends, unless its lock is renewed.
    pub(crate) ttl: Option<Duration>,
}

impl Told {
    /// Reads a push. `None` if it does not name the leader.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let mut fields = payload.splitn(6, |b| *b == b' ');
        let token = number(fields.next()?)?;
        let version = match fields.next()? {
            b"gone" => return Some(Self::Gone(token)),
            version => number(version)?,
        };
        let ttl = number(fields.next()?).map(Duration::from_millis);
        // The letter makes clients of a version without the offset reject the rest.
        let offset = number(fields.next()?.strip_prefix(b"o")?)?;
        let length = usize::try_from(number(fields.next()?)?).ok()?;
        let (who, value) = fields.next()?.split_at_checked(length)?;
        let leader = leader(token, Some(offset), who, value);
        Some(Self::Leads(Leads { leader, version, ttl }))
    }
}

/// Returns the latest time that a token can stand for. A push does not carry the server's time, so
/// a token further ahead of this clock is taken for no time.
fn latest() -> u64 {
    let now = wall_clock().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now + MOST_AHEAD).as_micros()).unwrap_or(u64::MAX)
}

fn leader(token: u64, offset: Option<u64>, who: &[u8], value: &[u8]) -> Leader {
    let who = Some(String::from_utf8_lossy(who).into_owned()).filter(|who| !who.is_empty());
    Leader::new(
        FencingToken::new(token),
        value.to_vec(),
        granted(who, Some(token), offset, latest()),
    )
}

/// The server's state of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Looked {
    /// The last token of the name. A leader with this token or a lower one is gone unless it leads
    /// now.
    fence: u64,
    /// The offset that the token floor adds to the time.
    offset: Option<u64>,
    pub(crate) state: State,
    /// When the lock's key expires unless it is renewed.
    pub(crate) ttl: Option<Duration>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// No attempt holds the lock alone.
    Vacant,
    Leads(Leads),
    /// A lock without a value: the holder's client, if it is a client of distlock, and the holder's
    /// description, if it has one of its own.
    Plain(Option<String>, Option<String>),
}

impl Looked {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [holder, Value::Int(pttl), fence, described, leads, offset, ..] = parts.as_slice()
        else {
            return None;
        };
        let offset = count(offset);
        let ttl = u64::try_from(*pttl).ok().map(Duration::from_millis);
        let fence = count(fence).unwrap_or_default();
        let state = match (bytes(holder), leads) {
            (None, _) => State::Vacant,
            (Some(_), Value::Array(fields)) => State::Leads(Leads::read(fields, offset, ttl)?),
            (Some(ticket), _) => {
                let client = Ticket::parse(&ticket).map(|(client, _)| client.to_owned());
                let own = bytes(described).and_then(|text| {
                    Some(String::from_utf8_lossy(text.strip_prefix(&ticket[..])?).into_owned())
                });
                State::Plain(client, own)
            }
        };
        Some(Self { fence, offset, state, ttl })
    }

    /// Returns the holder of a lock without a value as a leader. A foreign holder has no known
    /// token: it gets the last grant's, so it comes after the last leader and before the next one.
    pub(crate) fn plain(&self, ours: bool, who: Option<String>) -> Leader {
        let holder = granted(who, ours.then_some(self.fence), self.offset, latest());
        Leader::new(FencingToken::new(self.fence), Vec::new(), holder)
    }
}

impl Leads {
    fn read(fields: &[Value], offset: Option<u64>, ttl: Option<Duration>) -> Option<Self> {
        let fields: Option<Vec<_>> = fields.iter().map(bytes).collect();
        let [token, version, who, value] = fields?.try_into().ok()?;
        let leader = leader(number(&token)?, offset, &who, &value);
        Some(Self { leader, version: number(&version)?, ttl })
    }
}

/// The newest state that an observer knows. By it, late or repeated pushes are ignored, and missing
/// ones are noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// The last leader's token.
    token: u64,
    version: u64,
    /// Whether it leads still.
    leads: bool,
}

/// The reaction to a push.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    /// It is news.
    Tell,
    /// It is known, or older than the known state.
    Ignore,
    /// A push before it is missing.
    Look,
}

impl Known {
    pub(crate) fn told(&mut self, told: &Told) -> Next {
        let (token, version, leads) = match told {
            Told::Leads(Leads { leader, version, .. }) => (leader.token.value(), *version, true),
            Told::Gone(token) => (*token, 0, false),
        };
        let expected = match token == self.token {
            true if !self.leads || leads && version <= self.version => return Next::Ignore,
            true => self.version + 1,
            false if token < self.token => return Next::Ignore,
            false => 0,
        };
        if version > expected {
            return Next::Look;
        }
        *self = Self { token, version, leads };
        Next::Tell
    }

    /// A look is newer than everything that was known when it was made.
    pub(crate) fn looked(&mut self, looked: &Looked) {
        let (token, version, leads) = match &looked.state {
            State::Leads(Leads { leader, version, .. }) => (leader.token.value(), *version, true),
            _ => (looked.fence, 0, false),
        };
        // It is lower only if the server has lost its data. Its present state counts all the same.
        *self = Self { token: token.max(self.token), version, leads };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(token: u64, version: u64) -> Told {
        Told::parse(format!("{token} {version} 2000 o0 2 mea value").as_bytes()).unwrap()
    }

    fn looked(fence: u64, led: Option<(u64, u64)>) -> Looked {
        let state = led.map_or(State::Vacant, |(token, version)| match leads(token, version) {
            Told::Leads(leads) => State::Leads(leads),
            Told::Gone(_) => State::Vacant,
        });
        Looked { fence, offset: None, state, ttl: None }
    }

    #[test]
    fn pushes_are_read_as_they_are_written() {
        let Told::Leads(Leads { leader, version, ttl }) = leads(7, 3) else { panic!() };
        assert_eq!((leader.token.value(), leader.value.as_slice()), (7, &b"a value"[..]));
        assert_eq!((leader.holder.description.as_deref(), version), (Some("me"), 3));
        assert_eq!(ttl, Some(Duration::from_secs(2)));
        assert_eq!(Told::parse(b"7 gone"), Some(Told::Gone(7)));
        let Some(Told::Leads(bare)) = Told::parse(b"7 0 -1 o0 0 \xff\0 ") else { panic!() };
        assert_eq!((bare.leader.value.as_slice(), bare.ttl), (&b"\xff\0 "[..], None));
        let odd =
            ["", "7", "7 look", "x gone", "7 0 9 o0 3 me", "7 0 9 o0 -1 me", "7 0 9 o0", "7 0 9"];
        // From a client of the version before the offset; then of a holder with a number as
        // description.
        let old = ["7 0 9 2 mea value", "7 0 9 4 24 mea value"];
        for odd in odd.into_iter().chain(old) {
            assert_eq!(Told::parse(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn late_and_repeated_pushes_are_ignored_and_a_missing_one_is_noticed() {
        let mut known = Known::default();
        let rows = [
            (leads(5, 0), Next::Tell),
            (leads(5, 0), Next::Ignore),
            (leads(5, 1), Next::Tell),
            (leads(5, 3), Next::Look),
            (leads(5, 2), Next::Tell),
            (leads(4, 9), Next::Ignore),
            (Told::Gone(4), Next::Ignore),
            (Told::Gone(5), Next::Tell),
            (Told::Gone(5), Next::Ignore),
            (leads(5, 3), Next::Ignore),
            (leads(7, 1), Next::Look),
            (leads(7, 0), Next::Tell),
            (leads(9, 0), Next::Tell),
            (Told::Gone(8), Next::Ignore),
            (Told::Gone(11), Next::Tell),
        ];
        for (told, next) in rows {
            assert_eq!(known.told(&told), next, "{told:?}");
        }
    }

    #[test]
    fn a_look_is_newer_than_earlier_pushes() {
        let mut known = Known::default();
        known.looked(&looked(5, Some((5, 4))));
        assert_eq!(known.told(&leads(5, 4)), Next::Ignore);
        assert_eq!(known.told(&leads(5, 5)), Next::Tell);
        known.looked(&looked(6, None));
        assert_eq!(known.told(&leads(6, 0)), Next::Ignore);
        assert_eq!(known.told(&Told::Gone(6)), Next::Ignore);
        known.looked(&looked(0, None));
        assert_eq!(known.told(&leads(6, 1)), Next::Ignore);
        assert_eq!(known.told(&leads(7, 0)), Next::Tell);
    }

    #[test]
    fn a_foreign_holder_has_no_known_token() {
        let answer = Value::Array(vec![
            Value::BulkString(b"somebody".to_vec()),
            Value::Int(-1),
            Value::BulkString(b"7".to_vec()),
            Value::Nil,
            Value::Nil,
            Value::BulkString(b"0".to_vec()),
        ]);
        let looked = Looked::read(&answer).unwrap();
        assert_eq!(looked.state, State::Plain(None, None));
        let leader = looked.plain(false, None);
        assert_eq!((leader.token.value(), leader.holder.token, looked.ttl), (7, None, None));
    }
}
