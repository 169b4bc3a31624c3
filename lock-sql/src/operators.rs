//! Operators' requests: the holders of a lock, the names in use, to take a lock away, and the token
//! floor.

use std::{collections::HashMap, time::Duration};

use lock_core::{
    Diagnosis, Entry, FencingToken, Holder, Instant, LockName, Result, TokenFloor, queue::admitted,
};
use uuid::Uuid;

use crate::{
    layout::row::{Row, Rows},
    session::Session,
    wire::{
        clock::CLOCK,
        script::{HEAD, Script},
        turns::Rank,
    },
};

const LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Holders and waiters of a name, in order.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        let inspect = |script: Script| script.inspect(name);
        let (_, rows) =
            self.insist(("inspect", Rank::Ask), inspect, LIMIT, patient(), None).await?;
        let mut entries: Vec<_> = rows.iter().map(entry).collect();
        Entry::judge(&mut entries);
        for (entry, row) in entries.iter_mut().zip(rows.iter()) {
            if entry.holds {
                entry.holder.token = Some(FencingToken::new(row.token));
                entry.holder.granted_at = row.granted;
            }
        }
        // An expired entry that is not removed yet blocks others, but holds nothing.
        entries.retain(|entry| entry.ttl_left != Some(Duration::ZERO));
        Ok(entries)
    }

    /// Whether the database takes writes.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn ping(&self) -> Result<()> {
        self.insist(("ping", Rank::Ask), Script::ping, LIMIT, patient(), None).await.map(drop)
    }

    /// Returns the holder in the way of these attempts of this client, and their places. The place
    /// behind more holders than [`HEAD`] is not known.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        let diagnose = |script: Script| script.diagnose(name, attempts);
        let (_, rows) =
            self.insist(("inspect", Rank::Ask), diagnose, LIMIT, patient(), None).await?;
        Ok(diagnosis(&rows, attempts))
    }

    /// The names in use that start with `prefix`.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        let used = |script: Script| script.used(prefix);
        let (_, rows) = self.insist(("names", Rank::Ask), used, LIMIT, patient(), None).await?;
        let name = |row: &Row| LockName::new(std::str::from_utf8(&row.name).ok()?).ok();
        Ok(rows.iter().filter_map(name).collect())
    }

    /// Returns what a commit outlives: see [`Script::durability`].
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn outlives(&self) -> Result<u64> {
        let (_, rows) =
            self.insist(("connect", Rank::Ask), Script::durability, LIMIT, patient(), None).await?;
        Ok(rows.number(0).unwrap_or_default())
    }

    /// Removes an entry of any client. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        let revoke = |script: Script| script.revoke(name, attempt, self.id);
        let (_, rows) =
            self.insist(("revoke", Rank::HandOver), revoke, LIMIT, patient(), None).await?;
        self.changed(name);
        Ok(rows.iter().any(|row| row.name == name.as_str().as_bytes()))
    }

    /// Returns the token floor, and the greatest token so far.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn token_floor(&self) -> Result<TokenFloor> {
        let op = ("token floor", Rank::Ask);
        let (_, rows) = self.insist(op, Script::floor, LIMIT, patient(), None).await?;
        Ok(floor(&rows))
    }

    /// Raises the token floor, unless it is as high.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let op = ("raise the token floor", Rank::Ask);
        let raise = |script: Script| script.raise_floor(above);
        let (_, rows) = self.insist(op, raise, LIMIT, patient(), None).await?;
        Ok(floor(&rows))
    }

    /// Returns the holders and waiters with a token that is not above the floor.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn below(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        let op = ("raise the token floor", Rank::Ask);
        let old = |script: Script| script.up_to(floor.above);
        let (_, rows) = self.insist(op, old, LIMIT, patient(), None).await?;
        let entry = |row: &Row| {
            let name = LockName::new(std::str::from_utf8(&row.name).ok()?).ok()?;
            Some((name, row.attempt))
        };
        Ok(rows.iter().filter_map(entry).collect())
    }
}

fn diagnosis(rows: &Rows, attempts: &[Uuid]) -> Diagnosis {
    let holders = admitted(rows.iter().map(|row| row.kind));
    let places: HashMap<_, _> = rows.numbers.iter().copied().collect();
    let place = |attempt| match usize::try_from(*places.get(attempt)?).ok()? {
        at if at <= holders => Some(0),
        // There may be more holders.
        _ if holders == HEAD => None,
        at => Some(at - holders),
    };
    let holder = rows.first().map(|row| {
        let token = (holders > 0).then(|| FencingToken::new(row.token));
        Holder::new(row.holder.clone(), token).queued(Some(row.since)).granted(row.granted)
    });
    Diagnosis::new(holder, attempts.iter().map(place).collect())
}

fn patient() -> Instant {
    CLOCK.now() + LIMIT * 2
}

fn entry(row: &Row) -> Entry {
    let holder = Holder::new(row.holder.clone(), None).queued(Some(row.since));
    Entry::new(Some(row.attempt), holder).with_kind(row.kind).with_ttl_left(row.left)
}

fn floor(rows: &Rows) -> TokenFloor {
    let token = |at: usize| FencingToken::new(rows.number(at).unwrap_or_default());
    TokenFloor::new(token(0), token(1))
}
