//! Requests of operators: the holders and waiters of a lock, the names in use, taking a lock away,
//! marks of work, and seeing and raising the token floor.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};
use lock_core::{Diagnosis, Entry, FencingToken, Kind, Layout, LockName, Mark, Result, TokenFloor};
use uuid::Uuid;
use zookeeper_client::{CreateMode, Error as ZkError, Stat};

use crate::{
    config::ZkConfig,
    error,
    layout::{
        child,
        floor::{Above, broken},
        listing,
        mark::{self, Dated},
        note::Note,
        path,
    },
    session::Session,
    wire::requests::{Exchange, Lane},
};

/// How many entries of a queue are read. Of the later ones only the attempts are told.
const MOST_NOTES: usize = 256;
/// How many directories are listed at the same time.
const AT_ONCE: usize = 64;

/// Returns the holders and waiters of a lock's directory, the holders first. None has a `ttl_left`:
/// a node lives as long as its session, and ZooKeeper tells no client how long another client's
/// session still lives.
pub(crate) async fn inspect(session: &Session, directory: &str) -> Result<Vec<Entry>> {
    // A server that lags would not show a grant that another one has told already.
    let names = listing::in_order(session.list_after_sync(directory, Lane::Look).await?);
    let notes = names.iter().take(MOST_NOTES).map(|name| async move {
        let exchange = session.begin_in(Lane::Look).await?;
        Ok(exchange.data(&format!("{directory}/{name}")).await)
    });
    let mut notes = try_join_all(notes).await?.into_iter();
    let above = session.above("inspect")?;
    let mut entries = Vec::with_capacity(names.len());
    let mut last = None;
    for name in &names {
        match notes.next() {
            // It has gone meanwhile.
            Some(Err(ZkError::NoNode)) => {}
            Some(Err(error)) => return Err(error::read_failed("inspect", error)),
            Some(Ok((note, stat))) => {
                entries.push(listing::read(name, &note, &stat, above));
                last = Some(stat);
            }
            None => entries.push(listing::unread(name)),
        }
    }
    Entry::judge(&mut entries);
    if let ([entry], Some(stat)) = (entries.as_mut_slice(), last)
        && came_last(session, directory, &stat).await?
    {
        entry.holder.granted_at = entry.holder.queued_at;
    }
    Ok(entries)
}

/// Whether no attempt has come or gone since the only entry was made, so that it was granted at
/// once. ZooKeeper has no history, and does not record when a node was deleted.
async fn came_last(session: &Session, directory: &str, only: &Stat) -> Result<bool> {
    let exchange = session.begin_in(Lane::Look).await?;
    match exchange.stat(directory).await {
        Ok(stat) => Ok(stat.is_some_and(|stat| stat.pzxid == only.czxid)),
        Err(error) => Err(error::read_failed("inspect", error)),
    }
}

/// Returns which holder is in the way, and the places of these attempts. Costs one list, and a read
/// of the first node.
pub(crate) async fn diagnose(
    session: &Session,
    directory: &str,
    attempts: &[Uuid],
) -> Result<Diagnosis> {
    let names = listing::in_order(session.list(directory, Lane::Look).await?);
    let mut entries: Vec<_> = names.iter().map(|name| listing::unread(name)).collect();
    if let (Some(name), Some(entry)) = (names.first(), entries.first_mut()) {
        let exchange = session.begin_in(Lane::Look).await?;
        // Only the first entry can differ from its name: a writer that shares the lock by now.
        if let Ok((note, stat)) = exchange.data(&format!("{directory}/{name}")).await {
            *entry = listing::read(name, &note, &stat, session.above("inspect")?);
        }
    }
    Entry::judge(&mut entries);
    Ok(Diagnosis::of(&entries, attempts))
}

/// A directory of a lock, or one above such directories.
struct Directory {
    path: String,
    name: LockName,
    entries: Vec<String>,
}

/// Returns the names with an entry that start with `prefix`, in order.
pub(crate) async fn names(session: &Session, prefix: &str) -> Result<Vec<LockName>> {
    let levels = directories(session, prefix).await?;
    let used = levels.into_iter().flatten().filter(|directory| !directory.entries.is_empty());
    let names = used.map(|directory| directory.name);
    let mut names: Vec<_> = names.filter(|name| name.as_str().starts_with(prefix)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Returns the directories of locks whose names may start with `prefix`, level by level.
async fn directories(session: &Session, prefix: &str) -> Result<Vec<Vec<Directory>>> {
    let config = &session.config;
    let (mut levels, mut level) = (Vec::new(), session.list(&config.prefix, Lane::Look).await?);
    while !level.is_empty() {
        let wanted = level.into_iter().filter_map(|path| lock_at(config, &path, prefix));
        let mut listed = stream::iter(wanted)
            .map(|(name, path)| async move {
                session.list(&path, Lane::Look).await.map(|children| (name, path, children))
            })
            .buffer_unordered(AT_ONCE);
        let mut found = Vec::new();
        level = Vec::new();
        while let Some((name, path, children)) = listed.try_next().await? {
            let is_entry = |child: &String| child::sequence(child).is_some();
            let (entries, others): (Vec<_>, Vec<_>) = children.into_iter().partition(is_entry);
            if config.layout == Layout::Native {
                level.extend(others.into_iter().map(|child| format!("{name}/{child}")));
            }
            found.push(Directory { path, name, entries });
        }
        levels.push(found);
    }
    Ok(levels)
}

/// Returns the lock of this directory, if its name or one below it may start with the prefix.
fn lock_at(config: &ZkConfig, path: &str, prefix: &str) -> Option<(LockName, String)> {
    let name = match config.layout {
        Layout::Escaped => LockName::from_escaped(path)?,
        _ => LockName::new(path).ok()?,
    };
    let above = || prefix.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    let may = name.as_str().starts_with(prefix) || (config.layout == Layout::Native && above());
    let directory = may.then(|| config.directory(&name).ok())??;
    Some((name, directory))
}

impl Session {
    /// Deletes the entry of any client's attempt. `found` tells afterwards whether there was one,
    /// also if this fails: the session may end after a deletion was sent, or answered.
    pub(crate) async fn revoke(
        &self,
        directory: &str,
        attempt: Uuid,
        found: &AtomicBool,
    ) -> Result<()> {
        loop {
            let mut moved = false;
            for path in self.nodes_of_grant(directory, attempt).await? {
                let removed = self.remove(&path).await;
                found.fetch_or(!matches!(removed, Ok(false)), Relaxed);
                moved |= !removed?;
            }
            if !moved {
                return Ok(());
            }
            // Since the list the grant has moved to another node, or the holder has released it.
        }
    }

    /// Returns the nodes of an attempt, or the node of an upgrade that took over its grant, as that
    /// node's note says.
    async fn nodes_of_grant(&self, directory: &str, attempt: Uuid) -> Result<Vec<String>> {
        let queue = listing::in_order(self.list_after_sync(directory, Lane::First).await?);
        let path = |name: &String| format!("{directory}/{name}");
        let own = queue.iter().filter(|name| child::attempt(name) == Some(attempt));
        let own: Vec<_> = own.map(path).collect();
        if !own.is_empty() {
            return Ok(own);
        }
        for name in queue.iter().filter(|name| child::kind(name) == Kind::Exclusive) {
            let path = path(name);
            let data = self.data(&path, Lane::First).await?.unwrap_or_default();
            if Note::read(&data).and_then(|note| note.attempt) == Some(attempt) {
                return Ok(vec![path]);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the servers' time in ms since 1970: that of a write, which is sent now. What is read
    /// after it is as new. `None` if nothing was ever marked.
    async fn time_for_marks(&self) -> Result<Option<i64>> {
        let path = &path::marks(&self.config.prefix);
        let write =
            |exchange: Arc<Exchange>| async move { exchange.set_data(path, b"", None).await };
        let written = self.answer("read marks", Lane::First, write).await?;
        Ok(written.map(|stat| stat.mtime))
    }

    async fn dated_mark(&self, name: &LockName, now: i64) -> Result<Option<Dated>> {
        let path = &path::mark(&self.config.prefix, name);
        let data = |exchange: Arc<Exchange>| async move { exchange.data(path).await };
        let found = self.answer("read marks", Lane::Look, data).await?;
        Ok(found.and_then(|(text, stat)| mark::read(&text, &stat, now)))
    }

    /// Returns the mark of a name.
    pub(crate) async fn mark_of(&self, name: &LockName) -> Result<Option<Mark>> {
        let Some(now) = self.time_for_marks().await? else { return Ok(None) };
        let dated = self.dated_mark(name, now).await?;
        Ok(dated.filter(|dated| !dated.has_ended).map(|dated| dated.mark))
    }

    /// Returns all marks in the order of their names, also those whose period is over.
    pub(crate) async fn all_marks(&self) -> Result<Vec<(LockName, Dated)>> {
        let Some(now) = self.time_for_marks().await? else { return Ok(Vec::new()) };
        let nodes = self.list(&path::marks(&self.config.prefix), Lane::Look).await?;
        let names = nodes.iter().filter_map(|node| LockName::from_escaped(node));
        let read = names.map(|name| async move {
            self.dated_mark(&name, now).await.map(|dated| dated.map(|dated| (name, dated)))
        });
        let mut marks: Vec<_> = try_join_all(read).await?.into_iter().flatten().collect();
        marks.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(marks)
    }

    /// Removes the mark of a name. Returns whether there was one.
    pub(crate) async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        self.remove(&path::mark(&self.config.prefix, name)).await
    }

    /// Returns the newest record, if there is one. What is read after it is not older.
    async fn record(&self) -> Result<Option<(Above, Stat)>> {
        let path = &path::floor_record(&self.config.prefix);
        let data = |exchange: Arc<Exchange>| async move {
            exchange.after_sync(path, || exchange.data(path)).await
        };
        let found = self.answer("token floor", Lane::First, data).await?;
        found.map(|(data, stat)| Ok((Above::read(path, &data, &stat)?, stat))).transpose()
    }

    /// Returns the floor and the newest token.
    pub(crate) async fn token_floor(&self) -> Result<TokenFloor> {
        let newest = self.newest().await?;
        // Read last: a raise meanwhile makes the result too great rather than too small.
        let above = self.record().await?.map_or(Above::default(), |(above, _)| above);
        Ok(TokenFloor::new(FencingToken::new(above.number), above.token_of(newest)))
    }

    /// Returns the newest transaction that has made an entry, or a later one: each directory records
    /// when the last entry was made in it, and the directory above records its deletion.
    async fn newest(&self) -> Result<i64> {
        let prefix = &self.config.prefix;
        let sync = |exchange: Arc<Exchange>| async move { exchange.sync(prefix).await };
        self.answer("token floor", Lane::First, sync).await?;
        let mut newest = 0;
        // The deletion of a directory meanwhile is recorded in the one above, which is read later.
        for level in directories(self, "").await?.into_iter().rev() {
            let mut changed = stream::iter(level)
                .map(|directory| async move { self.changed(&directory.path).await })
                .buffer_unordered(AT_ONCE);
            while let Some(changed) = changed.try_next().await? {
                newest = newest.max(changed);
            }
        }
        let ends = prefix.rmatch_indices('/').map(|(end, _)| end.max(1));
        for end in std::iter::once(prefix.len()).chain(ends) {
            newest = newest.max(self.changed(&prefix[..end]).await?);
        }
        Ok(newest)
    }

    /// Returns when a child of this node was made or deleted last; 0 if there is no such node.
    async fn changed(&self, path: &str) -> Result<i64> {
        Ok(self.stat(path).await?.map_or(0, |stat| stat.pzxid))
    }

    /// Raises the floor, unless it is as high already. Of two clients that raise it at once, the
    /// second one finds the first one's record. Ends all sessions that count from the record
    /// before, this one among them.
    pub(crate) async fn raise_floor(&self, to: FencingToken) -> Result<()> {
        let (path, data) = (&path::floor_record(&self.config.prefix), to.to_string());
        let options = CreateMode::Persistent.with_acls(self.config.access.acls());
        loop {
            let record = self.record().await?;
            if record.map_or(0, |(above, _)| above.number) >= to.value() {
                return Ok(());
            }
            // It may be a lock's directory, which servers delete when its last child is gone.
            if record.is_some_and(|(above, stat)| above.since == 0 && stat.cversion > 0) {
                return Err(broken(format!("{path} has had children; delete it, and try again")));
            }
            let exchange = self.begin()?;
            let written = match record {
                Some((_, stat)) => {
                    exchange.set_data(path, data.as_bytes(), Some(stat.version)).await.map(drop)
                }
                None => exchange.create(path, data.as_bytes(), &options).await.map(drop),
            };
            match (written, record) {
                (Ok(()), _) => return Ok(()),
                (Err(ZkError::NoNode), None) => {
                    if let Err(error) = exchange.mkdir(&self.config.prefix, &options).await {
                        self.again("create the locks' directory", error).await?;
                    }
                }
                // In each of these cases the next look at the record tells the result.
                (Err(ZkError::NoNode | ZkError::NodeExists | ZkError::BadVersion), _) => {}
                (Err(error), _) => self.again("raise the token floor", error).await?,
            }
        }
    }

    /// Returns the attempts with nodes that were made before the last raise of the floor: those of
    /// clients that have not heard of it yet.
    pub(crate) async fn before_floor(&self) -> Result<Vec<(LockName, Uuid)>> {
        let Some((above, _)) = self.record().await? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for Directory { path, name, entries } in directories(self, "").await?.into_iter().flatten()
        {
            for child in listing::in_order(entries) {
                let exchange = self.begin_in(Lane::Look).await?;
                match exchange.data(&format!("{path}/{child}")).await {
                    Ok((note, stat)) if above.is_after(&stat) => {
                        let attempt = listing::read(&child, &note, &stat, above).attempt;
                        found.extend(attempt.map(|attempt| (name.clone(), attempt)));
                    }
                    Ok(_) | Err(ZkError::NoNode) => {}
                    Err(error) => return Err(error::read_failed("raise the token floor", error)),
                }
            }
        }
        Ok(found)
    }
}
