//! Requests of operators: holder and waiters of a lock, the names in use, revoking, marks of work,
//! the token floor. All of them fail as [`Session::insist`] does.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lock_core::{
    Clock, Diagnosis, Effect, Entry, FencingToken, LockName, Mark, Result, TokenFloor,
    keep::{errors::unsupported, marks},
};
use redis::{FromRedisValue, Value};
use uuid::Uuid;

use crate::{
    error::{self, STORE},
    layout::key::{DONE, Key, QUEUE, floor, lock_of},
    session::{Session, node::Node, retry::Effort},
    wire::{answer, call::Request, scan, script, snapshot::Snapshot},
};

/// Time limit of one question.
const LIMIT: Duration = Duration::from_secs(2);
/// Number of attempts for whose places one request asks.
const PLACES: usize = 1000;

impl Session {
    /// Returns the holders of a lock, then its waiters.
    pub(crate) async fn inspect(&self, key: &Key) -> Result<Vec<Entry>> {
        let read = script::read(key, "all", &[]);
        let mut snapshot = self.question("inspect", &read, None, Snapshot::read).await?;
        self.describe_clients(&mut snapshot).await;
        Ok(snapshot.entries())
    }

    /// Returns a holder that blocks these attempts of this client, and the place of each attempt.
    pub(crate) async fn diagnose(&self, key: &Key, attempts: &[Uuid]) -> Result<Diagnosis> {
        let tickets: Vec<_> = attempts.iter().map(|attempt| self.ticket(*attempt)).collect();
        let (mut places, mut rest) = (Vec::new(), &tickets[..]);
        loop {
            let (now, later) = rest.split_at(rest.len().min(PLACES));
            let read = script::read(key, "places", now);
            let mut snapshot = self.question("diagnose", &read, None, Snapshot::read).await?;
            places.extend(&snapshot.places);
            rest = later;
            if rest.is_empty() {
                self.describe_clients(&mut snapshot).await;
                let holder = snapshot.entries().into_iter().next();
                return Ok(Diagnosis::new(holder.map(|entry| entry.holder), places));
            }
        }
    }

    /// Returns the names that start with `prefix` and have a holder or a waiter.
    pub(crate) async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        let config = &self.config;
        let wanted = |lock: &[u8]| {
            Key::name_of(config, lock).filter(|name| name.as_str().starts_with(prefix))
        };
        let held = self.keys(&scan::starting_with(&Key::start_of(config, prefix))).await?;
        let mut names: BTreeSet<_> = held.iter().filter_map(|key| wanted(key)).collect();
        // A name may have no holder for a moment, so queues count too. But their waiters may be
        // dead.
        let queues = self.keys(&[b"*", QUEUE].concat()).await?;
        for name in queues.iter().filter_map(|queue| wanted(lock_of(queue, QUEUE)?)) {
            if !names.contains(&name) && !self.inspect(&Key::new(config, &name)).await?.is_empty() {
                names.insert(name);
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Returns the mark of a name, which its server removes when its period is over. A text that is
    /// no mark is none: the next one replaces it.
    pub(crate) async fn mark(&self, key: &Key) -> Result<Option<Mark>> {
        let get = Request::new(key.lock(), redis::cmd("GET").arg(key.done()).take());
        let read = |value: &Value| match value {
            Value::Nil => Some(None),
            value => Some(marks::read(&answer::bytes(value)?)),
        };
        self.question("mark", &get, None, read).await
    }

    /// Returns the marks of the names that start with `prefix`.
    pub(crate) async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        let name = |done: &Vec<u8>| Key::name_of(&self.config, lock_of(done, DONE)?);
        let keys = self.keys(&[b"*", DONE].concat()).await?;
        let names: BTreeSet<_> = keys.iter().filter_map(name).collect();
        let mut marks = Vec::new();
        for name in names.into_iter().filter(|name| name.as_str().starts_with(prefix)) {
            let mark = self.mark(&Key::new(&self.config, &name)).await?;
            marks.extend(mark.map(|mark| (name, mark)));
        }
        Ok(marks)
    }

    /// Removes the mark of a name. Returns whether there was one, or may have been: an earlier
    /// sending without an answer may have removed it.
    pub(crate) async fn clear_mark(&self, key: &Key) -> Result<bool> {
        let del = Request::new(key.lock(), redis::cmd("DEL").arg(key.done()).take());
        let effort = Effort::in_turn("clear the mark", LIMIT, Clock::Boot.now() + LIMIT * 2);
        let outcome = self.insist(&del, effort, answer::int).await;
        Ok(outcome.answer?.1 > 0 || outcome.before == Effect::Unknown)
    }

    async fn keys(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        for node in self.routes.all() {
            let ask = async |scan| {
                self.question("names", &Request::new(b"", scan), Some(&node), parsed).await
            };
            keys.append(&mut scan::keys(pattern, ask).await?);
        }
        Ok(keys)
    }

    /// Removes an attempt of any client. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist). [`Error::Unavailable`](lock_core::Error::Unavailable) also
    /// if the attempt is gone, and a request without an answer may have removed it.
    pub(crate) async fn revoke(&self, key: &Key, attempt: Uuid) -> Result<bool> {
        let deadline = Clock::Boot.now() + LIMIT * 2;
        let effort = Effort::urgent("revoke", LIMIT, deadline);
        let outcome = self.insist(&script::revoke(key, attempt), effort, answer::int).await;
        match (outcome.before, outcome.answer?.1) {
            (_, 1) => Ok(true),
            (Effect::None, _) => Ok(false),
            (effect, _) => {
                let why =
                    "the attempt is gone; whether by this call is not known, as an answer was lost";
                Err(error::unavailable("revoke", effect, why))
            }
        }
    }

    /// Raises the token floor to `above`, if one is given. Returns how far tokens have come. A script
    /// of a cluster reads keys of one slot only, and the floor belongs to all names.
    pub(crate) async fn token_floor(&self, above: Option<FencingToken>) -> Result<TokenFloor> {
        let (verb, op) = match above {
            None => ("read", "token floor"),
            Some(_) => ("raise", "raise the token floor"),
        };
        if self.config.is_cluster() {
            let why = "where one request reads keys of one slot only";
            let what = format!("{verb} the token floor of a Redis Cluster, {why}");
            return Err(unsupported(STORE, what));
        }
        let request = script::floor(floor(&self.config.prefix), above);
        let (above, newest) = self.question(op, &request, None, parsed).await?;
        Ok(TokenFloor::new(FencingToken::new(above), FencingToken::new(newest)))
    }

    /// Sends a request that may be executed twice, to a node if one is given, and reads its answer.
    async fn question<T>(
        &self,
        op: &'static str,
        request: &Request<'_>,
        node: Option<&Arc<Node>>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T> {
        let deadline = Clock::Boot.now() + LIMIT * 2;
        let effort = Effort { node, ..Effort::in_turn(op, LIMIT, deadline) };
        self.insist(request, effort, read).await.answer.map(|(_, answer)| answer)
    }
}

fn parsed<T: FromRedisValue>(value: &Value) -> Option<T> {
    redis::from_redis_value_ref(value).ok()
}
