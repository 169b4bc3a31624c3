//! Znodes as keys, through the bare client. A key with an expiry is ephemeral, and ends with its
//! session.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use crate::{Failure, KeySpace, Keys, Nature};

/// Time for which a session outlives its client. It is the TTL of keys with an expiry here.
const SESSION: Duration = Duration::from_secs(3);
/// The longest of the lab's servers.
const LONG: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct ZooKeeperKeys {
    address: String,
    session: Duration,
}

impl ZooKeeperKeys {
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let address = url
            .strip_prefix("zookeeper://")
            .ok_or("an URL of ZooKeeper begins with zookeeper://")?;
        Ok(Self { address: address.to_owned(), session: SESSION })
    }

    /// With sessions that outlive a client which is cut off for some seconds.
    pub(crate) fn lasting(mut self) -> Self {
        self.session = LONG;
        self
    }
}

#[async_trait]
impl KeySpace for ZooKeeperKeys {
    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        let connector = Client::connector().with_session_timeout(self.session);
        Ok(Arc::new(Connected(connector.connect(&self.address).await?)))
    }
}

struct Connected(Client);

fn path(key: &str) -> String {
    format!("/{}", key.replace('/', "."))
}

impl Connected {
    /// Returns the value with its version.
    async fn read(&self, key: &str) -> Result<Option<(String, i32)>, Failure> {
        match self.0.get_data(&path(key)).await {
            Ok((data, stat)) => {
                Ok(Some((String::from_utf8_lossy(&data).into_owned(), stat.version)))
            }
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the node. Returns whether it had this version.
    async fn delete(&self, key: &str, version: Option<i32>) -> Result<bool, Failure> {
        match self.0.delete(&path(key), version).await {
            Ok(()) => Ok(true),
            Err(Error::NoNode | Error::BadVersion) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Keys for Connected {
    async fn set_nx(&self, key: &str, value: &str, ttl: Option<Duration>) -> Result<bool, Failure> {
        let mode = if ttl.is_some() { CreateMode::Ephemeral } else { CreateMode::Persistent };
        let options = mode.with_acls(Acls::anyone_all());
        match self.0.create(&path(key), value.as_bytes(), &options).await {
            Ok(_) => Ok(true),
            Err(Error::NodeExists) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        if !self.set_nx(key, value, None).await? {
            self.0.set_data(&path(key), value.as_bytes(), None).await?;
        }
        Ok(())
    }

    async fn expire(&self, key: &str, _ttl: Duration, of: Option<&str>) -> Result<bool, Failure> {
        // The session renews its own nodes.
        let Some(value) = of else {
            return Err("ZooKeeper cannot give a node an end that was created without one".into());
        };
        Ok(self.get(key).await?.as_deref() == Some(value))
    }

    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure> {
        let stat = self.0.check_stat(&path(key)).await?;
        Ok(stat.map(|stat| (stat.ephemeral_owner != 0).then_some(SESSION)))
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        Ok(self.read(key).await?.map(|(value, _)| value))
    }

    async fn del(&self, key: &str, of: Option<&str>) -> Result<bool, Failure> {
        let Some(value) = of else { return self.delete(key, None).await };
        match self.read(key).await? {
            Some((found, version)) if found == value => self.delete(key, Some(version)).await,
            _ => Ok(false),
        }
    }

    /// Counts down by versioned sets.
    async fn decr(&self, key: &str, unless_empty: bool) -> Result<Option<i64>, Failure> {
        loop {
            let Some((value, version)) = self.read(key).await? else { return Ok(None) };
            let left = value.parse::<i64>()?;
            if unless_empty && left <= 0 {
                return Ok(None);
            }
            let next = (left - 1).to_string();
            match self.0.set_data(&path(key), next.as_bytes(), Some(version)).await {
                Ok(_) => return Ok(Some(left - 1)),
                Err(Error::BadVersion) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn gone(&self, key: &str) -> Result<bool, Failure> {
        loop {
            let watcher = match self.0.get_and_watch_data(&path(key)).await {
                Ok((_, _, watcher)) => watcher,
                Err(Error::NoNode) => return Ok(true),
                Err(error) => return Err(error.into()),
            };
            let event = watcher.changed().await;
            if event.event_type == zookeeper_client::EventType::NodeDeleted {
                return Ok(true);
            }
        }
    }

    async fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let start = path(prefix);
        let nodes = self.0.list_children("/").await?;
        let rest = nodes.iter().filter_map(|node| node.strip_prefix(&start[1..]));
        let mut names: Vec<_> = rest.map(|rest| format!("{prefix}{rest}")).collect();
        names.sort();
        Ok(names)
    }
}
