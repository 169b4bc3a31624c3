//! The token floor: what is added to transaction ids.
//!
//! Its record is the data of one node, which each session watches. A server applies transactions in
//! order and tells a session of a change before it answers with anything later, so whoever has an
//! answer about a node that was made after a raise has been told of the raise: that costs no request.

use std::{fmt, pin::Pin};

use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use lock_core::{Effect, Error, FencingToken, LockName, Result, TokenFloor};
use tokio::sync::Mutex;
use uuid::Uuid;
use zookeeper_client::{Acls, CreateMode, Error as ZkError, Stat, WatchedEvent};

use crate::{
    config::ZkConfig,
    error::STORE,
    inspect,
    layout::path::{self, directory},
    names,
    queue::view,
    session::Session,
    wire::turns::Turn,
};

/// The record, as far as this session knows it.
pub(crate) struct Floor {
    path: String,
    seen: Mutex<Option<Seen>>,
}

struct Seen {
    above: Above,
    changed: Pin<Box<dyn Future<Output = WatchedEvent> + Send>>,
}

/// What is added, and to what; the default is nothing, to all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Above {
    number: u64,
    /// The transaction that wrote it.
    since: i64,
}

impl Above {
    /// The token of this node; `None` if it was made before, and counts from a floor that is not
    /// known any more.
    pub(crate) fn token(self, stat: &Stat) -> Option<FencingToken> {
        (!self.is_after(stat)).then(|| self.token_of(stat.czxid))
    }

    /// Whether the floor was raised after this node was made.
    fn is_after(self, stat: &Stat) -> bool {
        stat.czxid < self.since
    }

    fn token_of(self, id: i64) -> FencingToken {
        // Transaction ids are positive.
        FencingToken::new(self.number.saturating_add(id.unsigned_abs()))
    }

    /// By what was read of the node.
    ///
    /// # Errors
    ///
    /// If somebody else has written there. What was made without data and never written is no record.
    fn read(path: &str, data: &[u8], stat: &Stat) -> Result<Self> {
        if data.is_empty() && stat.version == 0 {
            return Ok(Self::default());
        }
        let number = std::str::from_utf8(data).ok().and_then(|text| text.parse().ok());
        let number = number.filter(|number| *number <= i64::MAX.unsigned_abs() / 2 + 1);
        number.map(|number| Self { number, since: stat.mzxid }).ok_or_else(|| {
            broken(format!("the data of {path}, the token floor's node, is no number up to 2^62"))
        })
    }
}

fn broken(why: String) -> Error {
    Error::Rejected { store: STORE, op: "token floor", effect: Effect::None, source: why.into() }
}

impl Floor {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { path: path::floor(prefix), seen: Mutex::default() }
    }
}

impl fmt::Debug for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Floor").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Session {
    /// What to add for nodes that answers before this call have told of: at least what counts for
    /// each of them. A request is sent only for the first call, and after a raise.
    ///
    /// # Errors
    ///
    /// If the session is over, or may not read the record.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing.
    pub(crate) async fn above(&self) -> Result<Above> {
        let mut seen = self.floor.seen.lock().await;
        if let Some(Seen { above, changed }) = &mut *seen
            && changed.now_or_never().is_none()
        {
            return Ok(*above);
        }
        *seen = None;
        loop {
            let exchange = self.begin()?;
            let path = &*self.floor.path;
            // In this order: what changes after the read is told.
            let (watched, data) = tokio::join!(exchange.watch_stat(path), exchange.data(path));
            let above = match data {
                Ok((data, stat)) => Ok(Above::read(path, &data, &stat)?),
                Err(ZkError::NoNode) => Ok(Above::default()),
                Err(error) => Err(error),
            };
            match (watched, above) {
                (Ok((_, watcher)), Ok(above)) => {
                    *seen = Some(Seen { above, changed: Box::pin(watcher.changed()) });
                    return Ok(above);
                }
                (Err(error), _) | (_, Err(error)) => self.again("token floor", error).await?,
            }
        }
    }

    /// The record as it is, if there is one.
    async fn record(&self) -> Result<Option<(Above, Stat)>> {
        loop {
            let exchange = self.begin()?;
            match exchange.data(&self.floor.path).await {
                Ok((data, stat)) => {
                    return Ok(Some((Above::read(&self.floor.path, &data, &stat)?, stat)));
                }
                Err(ZkError::NoNode) => return Ok(None),
                Err(error) => self.again("token floor", error).await?,
            }
        }
    }

    /// How far tokens have come.
    pub(crate) async fn token_floor(&self, config: &ZkConfig) -> Result<TokenFloor> {
        let newest = match self.newest_made(config).await {
            Err(Error::Denied { .. }) => self.newest_seen(config).await?,
            newest => newest?,
        };
        // Read last: a raise meanwhile makes it too great rather than too small.
        let above = self.record().await?.map_or(Above::default(), |(above, _)| above);
        Ok(TokenFloor::new(FencingToken::new(above.number), above.token_of(newest)))
    }

    /// A transaction that no earlier one is newer than: a node is made for a moment.
    async fn newest_made(&self, config: &ZkConfig) -> Result<i64> {
        let path = format!("{}-{}", self.floor.path, Uuid::new_v4().simple());
        let options = CreateMode::Ephemeral.with_acls(config.access.acls());
        let stat = loop {
            let exchange = self.begin()?;
            match exchange.create(&path, b"", &options).await {
                Ok((stat, _)) => break stat,
                Err(ZkError::NoNode) => {
                    self.make_prefix(&config.prefix, config.access.acls()).await?
                }
                // Made by a request that was not answered.
                Err(ZkError::NodeExists) => {
                    if let Some(stat) = self.stat(&path).await? {
                        break stat;
                    }
                }
                Err(error) => self.again("token floor", error).await?,
            }
        };
        self.remove(&path).await?;
        Ok(stat.czxid)
    }

    /// The newest transaction that has made an entry, or a later one, for a login that may only read:
    /// each directory knows when an entry was made in it last, and that above it when it was deleted.
    async fn newest_seen(&self, config: &ZkConfig) -> Result<i64> {
        let synced = self.begin()?.sync(&config.prefix).await;
        synced.map_err(|error| crate::error::read_failed("token floor", error))?;
        let mut newest = 0;
        // What is deleted meanwhile is known to the one above it, which is asked later.
        for level in names::directories(self, config, "").await?.into_iter().rev() {
            let mut changed = stream::iter(level)
                .map(|directory| async move { self.changed(&directory.path).await })
                .buffer_unordered(names::AT_ONCE);
            while let Some(changed) = changed.try_next().await? {
                newest = newest.max(changed);
            }
        }
        let ends = config.prefix.rmatch_indices('/').map(|(end, _)| end.max(1));
        for end in std::iter::once(config.prefix.len()).chain(ends) {
            newest = newest.max(self.changed(&config.prefix[..end]).await?);
        }
        Ok(newest)
    }

    /// When a child of this node was made or deleted last; 0 if there is no such node.
    async fn changed(&self, path: &str) -> Result<i64> {
        Ok(self.stat(path).await?.map_or(0, |stat| stat.pzxid))
    }

    /// Raises the floor, unless it is as high. Of two who do so at once, the second finds the first
    /// one's.
    pub(crate) async fn raise_floor(&self, config: &ZkConfig, to: FencingToken) -> Result<()> {
        let (data, acls) = (to.to_string(), config.access.acls());
        let options = CreateMode::Persistent.with_acls(acls);
        loop {
            let record = self.record().await?;
            if record.map_or(0, |(above, _)| above.number) >= to.value() {
                return Ok(());
            }
            let (path, data) = (&*self.floor.path, data.as_bytes());
            // A lock's directory, perhaps: servers delete those when their last child has gone.
            if record.is_some_and(|(above, stat)| above.since == 0 && stat.cversion > 0) {
                return Err(broken(format!("{path} has had children; delete it, and try again")));
            }
            let exchange = self.begin()?;
            let written = match record {
                Some((_, stat)) => exchange.replace_data(path, data, stat.version).await.map(drop),
                None => exchange.create(path, data, &options).await.map(drop),
            };
            match (written, record) {
                (Err(ZkError::NoNode), None) => self.make_prefix(&config.prefix, acls).await?,
                // Whatever it is, the record tells.
                (Ok(()) | Err(ZkError::NoNode | ZkError::NodeExists | ZkError::BadVersion), _) => {}
                (Err(error), _) => self.again("raise the token floor", error).await?,
            }
        }
    }

    async fn make_prefix(&self, prefix: &str, acls: Acls<'static>) -> Result<()> {
        let exchange = self.begin()?;
        match exchange.mkdir(prefix, &CreateMode::Persistent.with_acls(acls)).await {
            Ok(()) | Err(ZkError::NodeExists) => Ok(()),
            Err(error) => self.again("create the locks' directory", error).await,
        }
    }

    /// The attempts with nodes that were made before the floor was raised the last time.
    pub(crate) async fn before_floor(&self, config: &ZkConfig) -> Result<Vec<(LockName, Uuid)>> {
        let Some((above, _)) = self.record().await? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for name in names::names(self, config, "").await? {
            let directory = directory(&config.prefix, config.layout, &name)?;
            for child in view::in_order(self.list(&directory, Turn::Look).await?) {
                let exchange = self.begin_in_turn(Turn::Look).await?;
                match exchange.data(&format!("{directory}/{child}")).await {
                    Ok((note, stat)) if above.is_after(&stat) => {
                        let attempt = inspect::read(&child, &note, &stat, above).attempt;
                        found.extend(attempt.map(|attempt| (name.clone(), attempt)));
                    }
                    Ok(_) | Err(ZkError::NoNode) => {}
                    Err(error) => {
                        return Err(crate::error::read_failed("raise the token floor", error));
                    }
                }
            }
        }
        Ok(found)
    }
}
