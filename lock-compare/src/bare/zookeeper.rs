//! Requests that only ZooKeeper's bare client can make.

use std::time::Duration;

use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, SessionState};

use crate::Failure;

/// Limit for one step on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the transaction that created each of two nodes.
pub(super) async fn create_revisions(
    addr: &str,
    keys: [&str; 2],
    together: bool,
) -> Result<[i64; 2], Failure> {
    let client = Client::connect(addr).await?;
    let paths = keys.map(|key| format!("/{}", key.replace('/', "-")));
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let groups: Vec<&[String]> = if together { vec![&paths] } else { paths.chunks(1).collect() };
    for group in groups {
        let mut writer = client.new_multi_writer();
        for path in group {
            writer.add_create(path, b"1", &mode)?;
        }
        writer.commit().await?;
    }
    let mut found = [0; 2];
    for (path, found) in paths.iter().zip(&mut found) {
        *found = client.check_stat(path).await?.ok_or("a node that was made is gone")?.czxid;
    }
    Ok(found)
}

/// An ephemeral node, with its owner's path to the server.
pub(crate) struct Ephemeral {
    owner: Client,
    other: Client,
    path: String,
}

impl Ephemeral {
    /// Connects the owner through one address, and an observer of the node through another.
    pub(crate) async fn make(owner: &str, other: &str, name: &str) -> Result<Self, Failure> {
        let connector = || Client::connector().with_session_timeout(TIMEOUT);
        let (owner, other) = (connector().connect(owner).await?, connector().connect(other).await?);
        let path = format!("/{}", name.replace('/', "-"));
        let mode = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        owner.create(&path, b"", &mode).await?;
        Ok(Self { owner, other, path })
    }

    /// Calls `how`, which breaks the owner's connection, and waits for a new one. Returns whether
    /// the node still exists then.
    pub(crate) async fn after_reset(&self, how: impl FnOnce()) -> Result<bool, Failure> {
        let mut states = self.owner.state_watcher();
        how();
        let again = async { while states.changed().await != SessionState::SyncConnected {} };
        timeout(PATIENCE, again).await?;
        self.is_there().await
    }

    /// Ends the owner's session. Returns whether the node still exists then.
    pub(crate) async fn after_end(self) -> Result<bool, Failure> {
        let Self { owner, other, path } = self;
        let (_, _, gone) = other.get_and_watch_data(&path).await?;
        drop(owner);
        timeout(PATIENCE, gone.changed()).await?;
        Ok(other.check_stat(&path).await?.is_some())
    }

    async fn is_there(&self) -> Result<bool, Failure> {
        // Makes the following read see all earlier writes.
        self.other.sync("/").await?;
        Ok(self.other.check_stat(&self.path).await?.is_some())
    }
}
