//! Work of a held lock is marked as done for a period.
//!
//! The mark has a node of its own, outside of the queue's directory, which servers delete when it
//! is empty. One transaction finds the grant's node and writes the mark.

use std::time::Duration;

use lock_core::{Clock, FencingToken, Instant, LockName, Result, keep::marks};
use zookeeper_client::{CreateMode, CreateOptions, Error as ZkError, MultiWriteError};

use crate::{layout::path, session::Session, wire::requests::Exchange};

/// How many marks whose period is over are removed at once.
const AT_ONCE: usize = 50;
/// The longest time that removing them delays the answer.
const CLEANUP: Duration = Duration::from_secs(1);

impl Session {
    /// Writes the mark of work whose period ends then, if this node of its grant is there. Returns
    /// whether it is. Then removes the marks whose period is over.
    pub(crate) async fn mark(
        &self,
        node: &str,
        name: &LockName,
        token: FencingToken,
        host: &str,
        ends: Instant,
    ) -> Result<bool> {
        let (prefix, op) = (&self.config.prefix, "mark as done");
        let path = path::mark(prefix, name);
        let options = CreateMode::Persistent.with_acls(self.config.access.acls());
        let mut is_new = false;
        loop {
            let left = ends.since(Clock::Boot.now());
            let text = marks::text(&marks::done_now(host, token, left));
            let exchange = self.begin()?;
            let made = is_new.then_some(&options);
            let written = put(&exchange, node, &path, text.as_bytes(), made);
            let written = self.over.run_until_cancelled(written).await;
            match written.ok_or_else(|| self.error(op))? {
                Ok(()) => break,
                Err(MultiWriteError::OperationFailed { index: 0, source: ZkError::NoNode }) => {
                    return Ok(false);
                }
                Err(MultiWriteError::OperationFailed { source: ZkError::NoNode, .. }) if is_new => {
                    if let Err(error) = exchange.mkdir(&path::marks(prefix), &options).await {
                        self.again(op, error).await?;
                    }
                }
                Err(MultiWriteError::OperationFailed {
                    source: ZkError::NoNode | ZkError::NodeExists,
                    ..
                }) => is_new = !is_new,
                Err(error) => self.again(op, error.into()).await?,
            }
        }
        // This mark stands all the same. The next one tries again. Not in a task of its own: the
        // process may end after its mark, as each one that cron starts.
        drop(Clock::Boot.timeout(CLEANUP, self.remove_ended_marks()).await);
        Ok(true)
    }

    async fn remove_ended_marks(&self) -> Result<()> {
        let marks = self.all_marks().await?;
        let ended = marks.into_iter().filter(|(_, dated)| dated.has_ended);
        for (name, dated) in ended.take(AT_ONCE) {
            let path = path::mark(&self.config.prefix, &name);
            let exchange = self.begin()?;
            let mut multi = exchange.transaction();
            // Unless it was written anew meanwhile.
            if multi.add_delete(&path, Some(dated.version)).is_ok() {
                drop(exchange.commit(multi).await);
            }
        }
        Ok(())
    }
}

/// Writes the mark into a node that is there, or makes one.
async fn put(
    exchange: &Exchange,
    node: &str,
    path: &str,
    text: &[u8],
    made: Option<&CreateOptions<'_>>,
) -> Result<(), MultiWriteError> {
    let mut multi = exchange.transaction();
    multi.add_check_version(node, -1)?;
    match made {
        Some(options) => multi.add_create(path, text, options)?,
        None => multi.add_set_data(path, text, None)?,
    }
    exchange.commit(multi).await.map(drop)
}
