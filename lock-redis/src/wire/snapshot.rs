//! The server's state of a name: holders of its lock, and waiters.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use lock_core::{Entry, FencingToken, Holder, Leader};
use redis::Value;

use super::answer::{bytes, count, number, numbers};
use crate::layout::{kind, ticket::Ticket};

/// The server's state of a name.
pub(crate) struct Snapshot {
    /// The lock's value, if one attempt holds it alone.
    alone: Option<Vec<u8>>,
    /// Time until the lock expires unless it is renewed.
    pub(crate) ttl_left: Option<Duration>,
    fence: Option<u64>,
    /// The holder's ticket, followed by its description.
    described: Option<Vec<u8>>,
    /// Token and value of the leader, if there is one.
    leads: Option<[Vec<u8>; 2]>,
    /// The members of a group: ticket, end of life, and record of each.
    members: Vec<[Vec<u8>; 3]>,
    /// Ticket and record of each waiter.
    waiting: Vec<[Vec<u8>; 2]>,
    /// The server's time in microseconds.
    now: u64,
    /// The offset that the token floor adds to it.
    offset: Option<u64>,
    /// The places of the attempts in the request; `None` beyond the searched part of the queue.
    pub(crate) places: Vec<Option<usize>>,
    /// The descriptions of clients, by client, as far as they are known.
    pub(crate) descriptions: HashMap<String, String>,
}

impl Snapshot {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [alone, Value::Int(pttl), fence, described, leads, lists @ ..] = parts.as_slice()
        else {
            return None;
        };
        let [offset, now, members, waiting, places] = lists else { return None };
        let places = numbers(places)?.into_iter().map(|place| usize::try_from(place).ok());
        let mut members = records::<3>(members)?;
        // Sorted by the token of the grant, with which each record begins.
        members.sort_by_cached_key(|[.., record]| number(record.split(|b| *b == b' ').next()?));
        Some(Self {
            alone: bytes(alone),
            ttl_left: u64::try_from(*pttl).ok().map(Duration::from_millis),
            fence: count(fence),
            described: bytes(described),
            leads: records(leads).and_then(|mut leader| leader.pop()),
            members,
            waiting: records(waiting)?,
            now: count(now)?,
            offset: count(offset),
            places: places.collect(),
            descriptions: HashMap::new(),
        })
    }

    /// Returns the clients of attempts without a description of their own.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &str> {
        let alone = self.alone.iter().filter(move |it| self.own_description(it).is_none());
        let members = self.members.iter().map(|[ticket, ..]| ticket);
        let waiting = self.waiting.iter().map(|[ticket, _]| ticket);
        let tickets = alone.chain(members).chain(waiting);
        tickets.filter_map(|t| Some(Ticket::parse(t)?.0)).filter(|client| !client.is_empty())
    }

    /// Returns the leader, or the holder of a lock without a value as a leader. A foreign holder has
    /// no known token: it gets the last grant's, so it comes after the last leader and before the
    /// next one.
    pub(crate) fn leader(&self) -> Option<Leader> {
        let mut holder = self.holder(self.alone.as_ref()?).holder;
        let (mut token, mut leaders) = (self.fence.unwrap_or_default(), Vec::new());
        if let Some([of_leader, value]) = &self.leads {
            (token, leaders) = (number(of_leader).unwrap_or_default(), value.clone());
            holder = self.granted(holder.description, Some(token));
        }
        Some(Leader::new(FencingToken::new(token), leaders, holder))
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let alone = self.alone.iter().map(|ticket| self.holder(ticket));
        let members = self.members.iter().filter_map(|member| self.member(member));
        let waiting = self.waiting.iter().filter_map(|waiting| self.waiter(waiting));
        alone.chain(members).chain(waiting).collect()
    }

    fn holder(&self, ticket: &[u8]) -> Entry {
        let (attempt, holder) = match Ticket::parse(ticket) {
            None => (None, Holder::default()),
            Some((client, attempt)) => {
                let description = self.description(self.own_description(ticket), client);
                (Some(attempt), self.granted(description, self.fence))
            }
        };
        let entry = Entry::new(attempt, holder).holding();
        match self.ttl_left {
            Some(left) => entry.with_ttl_left(left),
            None => entry,
        }
    }

    fn own_description(&self, ticket: &[u8]) -> Option<String> {
        let own = self.described.as_ref()?.strip_prefix(ticket)?;
        Some(String::from_utf8_lossy(own).into_owned())
    }

    /// Reads one of several holders. Its record: token, kind, and description.
    fn member(&self, [ticket, alive, record]: &[Vec<u8>; 3]) -> Option<Entry> {
        let (client, attempt) = Ticket::parse(ticket)?;
        let record = String::from_utf8_lossy(record);
        let mut fields = record.splitn(3, ' ');
        let (token, kind) = (fields.next()?.parse().ok(), kind::parse(fields.next()?));
        let own = fields.next().map(str::to_owned);
        let holder = self.granted(self.description(own, client), token);
        let left = self.left(number(alive)?);
        Some(Entry::new(Some(attempt), holder).with_kind(kind).with_ttl_left(left).holding())
    }

    /// Reads a waiter. Its record: alive until, TTL, since when, kind, and description.
    fn waiter(&self, [ticket, record]: &[Vec<u8>; 2]) -> Option<Entry> {
        let (client, attempt) = Ticket::parse(ticket)?;
        let record = String::from_utf8_lossy(record);
        let mut fields = record.splitn(5, ' ');
        let left = self.left(fields.next()?.parse().ok()?);
        let since = fields.nth(1).and_then(|since| time(since.parse().ok()?));
        let word = fields.next()?;
        let own = fields.next().map(|end| kind::description(word, end).to_owned());
        let holder = Holder::new(self.description(own, client), None).queued(since);
        Some(Entry::new(Some(attempt), holder).with_kind(kind::parse(word)).with_ttl_left(left))
    }

    fn left(&self, alive: u64) -> Duration {
        Duration::from_micros(alive.saturating_sub(self.now))
    }

    /// Returns the holder of a grant. A token is the time of the grant plus the token floor's
    /// offset, unless the server's clock went back. A time after the server's is dropped.
    fn granted(&self, description: Option<String>, token: Option<u64>) -> Holder {
        let since = token.zip(self.offset).and_then(|(token, offset)| token.checked_sub(offset));
        let since = since.filter(|since| *since <= self.now).and_then(time);
        Holder::new(description, token.map(FencingToken::new)).granted(since)
    }

    /// Returns an attempt's own description, or else its client's.
    fn description(&self, own: Option<String>, client: &str) -> Option<String> {
        let own = own.filter(|own| !own.is_empty());
        own.or_else(|| self.descriptions.get(client).cloned())
    }
}

/// Splits a flat list into records.
fn records<const N: usize>(list: &Value) -> Option<Vec<[Vec<u8>; N]>> {
    let Value::Array(parts) = list else { return None };
    let record = |record: &[Value]| {
        let fields: Option<Vec<_>> = record.iter().map(bytes).collect();
        fields?.try_into().ok()
    };
    Some(parts.chunks_exact(N).filter_map(record).collect())
}

fn time(micros: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    fn leader(holder: Value, leads: Value) -> Option<Leader> {
        let (now, none) = (text(b"9"), Value::Array(Vec::new()));
        let parts = [holder, Value::Int(-1), text(b"7"), Value::Nil, leads, text(b"0"), now];
        let parts = parts.into_iter().chain([none.clone(), none.clone(), none]).collect();
        let snapshot = Snapshot::read(&Value::Array(parts)).unwrap();
        assert_eq!(snapshot.ttl_left, None);
        snapshot.leader()
    }

    /// As clients have left them in stores.
    #[test]
    fn records_of_layout_1_are_read() {
        let list = |texts: &[&str]| {
            Value::Array(texts.iter().map(|record| text(record.as_bytes())).collect())
        };
        let member = [
            "0123456789abcdef:54c4cafc6f4e4d0b9a551c8d3f0d2c11",
            "1767225610000000",
            "1767225600000000 p2/3 worker pid 7 on h",
        ];
        let waiter = [
            "fedcba9876543210:9f20b7d102ad4a7e8a5177d0c9be6a40",
            "1767225612000000 15000 1767225600500000 s worker pid 8 on h",
        ];
        let (fence, now) = (text(b"1767225600000000"), text(b"1767225601000000"));
        let parts = [Value::Nil, Value::Int(9000), fence, Value::Nil, Value::Nil, text(b"0"), now];
        let lists = [list(&member), list(&waiter), list(&[])];
        let parts = parts.into_iter().chain(lists).collect();
        let entries = Snapshot::read(&Value::Array(parts)).unwrap().entries();
        let permits = lock_core::Kind::Permit { weight: 2, limit: 3 };
        let expected = [
            (permits, true, Some(1_767_225_600_000_000_u64), Some(9_u64), "worker pid 7 on h"),
            (lock_core::Kind::Shared, false, None, Some(11), "worker pid 8 on h"),
        ];
        assert_eq!(entries.len(), expected.len());
        for (entry, expected) in entries.iter().zip(expected) {
            let token = entry.holder.token.map(FencingToken::value);
            let left = entry.ttl_left.map(|left| left.as_secs());
            let who = entry.holder.description.as_deref().unwrap_or_default();
            assert_eq!((entry.kind, entry.holds, token, left, who), expected);
        }
    }

    #[test]
    fn any_bytes_are_a_value() {
        let ticket = Ticket::simple(uuid::Uuid::new_v4());
        let fields = Value::Array([b"5", &b"\xff\0 "[..]].map(text).to_vec());
        let leader = leader(text(ticket.text()), fields).unwrap();
        assert_eq!((leader.token.value(), &leader.value[..]), (5, &b"\xff\0 "[..]));
        assert_eq!(leader.holder.token, Some(leader.token));
    }

    #[test]
    fn a_foreign_holder_has_no_known_token() {
        assert_eq!(leader(Value::Nil, Value::Nil), None);
        let leader = leader(text(b"somebody"), Value::Nil).unwrap();
        assert_eq!((leader.token.value(), leader.holder.token), (7, None));
    }
}
