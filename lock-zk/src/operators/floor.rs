//! Seeing and raising the token floor.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use lock_core::{FencingToken, LockName, Result, TokenFloor};
use uuid::Uuid;
use zookeeper_client::{CreateMode, Error as ZkError, Stat};

use crate::{
    error,
    layout::{
        floor::{Above, broken},
        listing, path,
    },
    operators::{AT_ONCE, Directory, directories},
    session::Session,
    wire::requests::{Exchange, Lane},
};

impl Session {
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
