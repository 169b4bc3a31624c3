//! Operators' requests: the holders of a lock, the names in use, to take a lock away, marks of
//! work, and the token floor. All of them fail as [`Session::insist`] does.

use std::{collections::HashMap, time::Duration};

use lock_core::{
    Clock, Diagnosis, Effect, Entry, FencingToken, Holder, LockName, Mark, Result, TokenFloor,
    keep::errors::unavailable, queue::admitted,
};
use uuid::Uuid;

use crate::{
    layout::{
        dialect::Dialect,
        row::{Row, Rows},
    },
    session::Session,
    wire::{
        cautions::{REPLICA, cautions},
        database::{Call, Reply},
        script::{HEAD, Script},
        turns::Rank,
    },
};

const LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Holders and waiters of a name, in order.
    pub(crate) async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        let rows = self.ask("inspect", |script| script.inspect(name)).await?;
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
    pub(crate) async fn ping(&self) -> Result<()> {
        self.ask("ping", Script::ping).await.map(drop)
    }

    /// Returns the holder in the way of these attempts of this client, and their places. The place
    /// behind more holders than [`HEAD`] is not known.
    pub(crate) async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        let rows = self.ask("inspect", |script| script.diagnose(name, attempts)).await?;
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
        Ok(Diagnosis::new(holder, attempts.iter().map(place).collect()))
    }

    /// The names in use that start with `prefix`.
    pub(crate) async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        let rows = self.ask("names", |script| script.used(prefix)).await?;
        Ok(rows.iter().filter_map(|row| name(&row.name)).collect())
    }

    /// The mark of a name.
    pub(crate) async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        let rows = self.ask("mark", |script| script.mark_of(name)).await?;
        Ok(rows.marks.into_iter().next().map(|(_, mark)| mark))
    }

    /// The marks of the names that start with `prefix`.
    pub(crate) async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        let rows = self.ask("marks", |script| script.marks(prefix)).await?;
        let named = |(bytes, mark): (Vec<u8>, Mark)| Some((name(&bytes)?, mark));
        Ok(rows.marks.into_iter().filter_map(named).collect())
    }

    /// Removes the mark of a name. Returns whether there was one, or may have been: an earlier
    /// sending without an answer may have removed it.
    pub(crate) async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        let clear = |script: Script| script.clear_mark(name);
        let Reply { rows, earlier, .. } =
            self.insist(call("clear the mark", Rank::Ask), clear).await?;
        Ok(!rows.marks.is_empty() || earlier == Effect::Unknown)
    }

    /// Returns what a commit outlives, as [`Script::durability`] says it, and the cautions about the
    /// server's settings.
    pub(crate) async fn durability(&self, is_managed: bool) -> Result<(u64, Vec<String>)> {
        let rows = self.ask("connect", Script::durability).await?;
        let has = rows.numbers.iter().skip(1).map(|(_, has)| *has > 0);
        let mut cautions = cautions(self.dialect(), has, is_managed);
        // A server of PostgreSQL that replicates another one takes no writes.
        if self.dialect() == Dialect::MySql && !cautions.iter().any(|known| known == REPLICA) {
            let answer = self.database.run(Rank::Ask, &self.script().replication(), LIMIT).await;
            let is_replica = answer.is_ok_and(|(_, rows)| rows.foreign > 0);
            cautions.extend(is_replica.then(|| REPLICA.to_owned()));
        }
        Ok((rows.number(0).unwrap_or_default(), cautions))
    }

    /// Removes an entry of any client. Returns whether there was one. Fails if it is gone, and a
    /// request without an answer may have removed it.
    pub(crate) async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        let revoke = |script: Script| script.revoke(name, attempt, self.id);
        let Reply { rows, earlier, .. } =
            self.insist(call("revoke", Rank::HandOver), revoke).await?;
        self.changed(name);
        let removed = rows.iter().any(|row| row.name == name.as_str().as_bytes());
        if !removed && earlier == Effect::Unknown {
            let why =
                "the attempt is gone; whether by this call is not known, as an answer was lost";
            return Err(unavailable(self.dialect().store(), "revoke", earlier, why));
        }
        Ok(removed)
    }

    /// Returns the token floor, and the greatest token so far.
    pub(crate) async fn token_floor(&self) -> Result<TokenFloor> {
        Ok(floor(&self.ask("token floor", Script::floor).await?))
    }

    /// Raises the token floor, unless it is as high.
    pub(crate) async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let raise = |script: Script| script.raise_floor(above);
        Ok(floor(&self.ask("raise the token floor", raise).await?))
    }

    /// Returns the holders and waiters with a token that is not above the floor.
    pub(crate) async fn below(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        let old = |script: Script| script.up_to(floor.above);
        let rows = self.ask("raise the token floor", old).await?;
        Ok(rows.iter().filter_map(|row| Some((name(&row.name)?, row.attempt))).collect())
    }

    async fn ask(&self, op: &'static str, script: impl Fn(Script) -> String) -> Result<Rows> {
        self.insist(call(op, Rank::Ask), script).await.map(|reply| reply.rows)
    }
}

fn call(op: &'static str, rank: Rank) -> Call<'static> {
    Call { op, rank, patience: LIMIT, deadline: Clock::Boot.now() + LIMIT * 2, caller: None }
}

/// The name in a row; `None` for one that is not a name, which this library has not written.
fn name(bytes: &[u8]) -> Option<LockName> {
    LockName::new(std::str::from_utf8(bytes).ok()?).ok()
}

fn entry(row: &Row) -> Entry {
    let holder = Holder::new(row.holder.clone(), None).queued(Some(row.since));
    Entry::new(Some(row.attempt), holder).with_kind(row.kind).with_ttl_left(row.left)
}

fn floor(rows: &Rows) -> TokenFloor {
    let token = |at: usize| FencingToken::new(rows.number(at).unwrap_or_default());
    TokenFloor::new(token(0), token(1))
}
