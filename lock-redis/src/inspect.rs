//! Who holds a lock, and who waits for it.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use lock_core::{Entry, Error, FencingToken, Holder, Result};
use redis::{Value, cmd};

use crate::{
    error,
    key::{Key, client_key},
    script::{self, Ticket},
    session::{CLOCK, Session},
};

const LIMIT: Duration = Duration::from_secs(2);

/// What the server has about a name.
struct Snapshot {
    holder: Option<Vec<u8>>,
    fence: Option<u64>,
    /// The holder's ticket, followed by what it says about itself.
    described: Option<Vec<u8>>,
    waiting: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Session {
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn inspect(&self, key: &Key) -> Result<Vec<Entry>> {
        let deadline = CLOCK.now() + LIMIT * 2;
        let command = script::inspect(key);
        let (_, value) = self.insist("inspect", &command, LIMIT, deadline, None).await?;
        let snapshot =
            Snapshot::read(&value).ok_or_else(|| error::unexpected("inspect", &value))?;
        let clients = self.descriptions(&snapshot).await?;
        Ok(snapshot.entries(&clients))
    }

    /// What the clients in a snapshot say about themselves.
    async fn descriptions(&self, snapshot: &Snapshot) -> Result<HashMap<String, String>> {
        let mut clients: Vec<_> = snapshot.clients().collect();
        clients.sort_unstable();
        clients.dedup();
        let mut known = HashMap::new();
        let deadline = CLOCK.now() + LIMIT;
        for client in clients {
            // One by one: in a cluster these keys are elsewhere, and there are seldom many.
            let mut get = cmd("GET");
            get.arg(client_key(client));
            match self.insist("inspect", &get, LIMIT, deadline, None).await {
                Ok((_, value)) => {
                    let text = bytes(&value);
                    known.extend(text.map(|text| {
                        (client.to_owned(), String::from_utf8_lossy(&text).into_owned())
                    }));
                }
                // These keys do not start with the prefix. Who may not read them sees no names.
                Err(Error::Denied { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(known)
    }
}

impl Snapshot {
    fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [holder, fence, described, Value::Array(waiting)] = parts.as_slice() else {
            return None;
        };
        let waiting =
            waiting.chunks_exact(2).filter_map(|pair| Some((bytes(&pair[0])?, bytes(&pair[1])?)));
        Some(Self {
            holder: bytes(holder),
            fence: bytes(fence).and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok()),
            described: bytes(described),
            waiting: waiting.collect(),
        })
    }

    fn clients(&self) -> impl Iterator<Item = &str> {
        let waiting = self.waiting.iter().map(|(ticket, _)| ticket);
        self.holder.iter().chain(waiting).filter_map(|ticket| Some(Ticket::parse(ticket)?.0))
    }

    fn entries(&self, clients: &HashMap<String, String>) -> Vec<Entry> {
        let waiting = self.waiting.iter().filter_map(|(t, record)| waiter(t, record, clients));
        self.holder.iter().map(|ticket| self.holder(ticket, clients)).chain(waiting).collect()
    }

    fn holder(&self, ticket: &[u8], clients: &HashMap<String, String>) -> Entry {
        let Some((client, attempt)) = Ticket::parse(ticket) else {
            return Entry::new(None, Holder::default());
        };
        let own = self.described.as_ref().and_then(|text| text.strip_prefix(ticket));
        let own = own.map(|text| String::from_utf8_lossy(text).into_owned());
        let description = own.or_else(|| clients.get(client).cloned());
        // A token is the time of its grant, unless the server's clock went back.
        let since = self.fence.and_then(time);
        Entry::new(
            Some(attempt),
            Holder::new(description, since, self.fence.map(FencingToken::new)),
        )
    }
}

/// A waiting attempt's record: alive until, TTL, since when, and who.
fn waiter(ticket: &[u8], record: &[u8], clients: &HashMap<String, String>) -> Option<Entry> {
    let (client, attempt) = Ticket::parse(ticket)?;
    let record = String::from_utf8_lossy(record);
    let mut fields = record.splitn(4, ' ').skip(2);
    let since = fields.next().and_then(|since| time(since.parse().ok()?));
    let own = fields.next().filter(|own| !own.is_empty()).map(str::to_owned);
    let description = own.or_else(|| clients.get(client).cloned());
    Some(Entry::new(Some(attempt), Holder::new(description, since, None)))
}

fn time(micros: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros))
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::SimpleString(text) => Some(text.clone().into_bytes()),
        _ => None,
    }
}
