//! ZooKeeper: create an ephemeral sequential node and list the directory, sent together; then
//! delete. The second floor has names and data as long as distlock's.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use distlock::LockName;
use zookeeper_client::{Acls, CreateMode, Error};

use super::{NOTE, own};
use crate::{
    Failure,
    contender::{Asked, Client, Opening, Role, Worker},
};

pub(in crate::contender) fn open(Asked { url, role, .. }: Asked) -> Opening {
    Box::pin(async move {
        let mut connector = zookeeper_client::Client::connector();
        if let (Some(user), Some(password)) = (url.user(), url.password()) {
            connector = connector.with_auth("digest", format!("{user}:{password}").as_bytes());
        }
        let mut cluster = url.hosts(2181).join(",");
        if !url.path().is_empty() {
            cluster += &format!("/{}", url.path());
        }
        let client = connector.connect(&cluster).await?;
        let mut options = url.options();
        let prefix = options.text("prefix").unwrap_or("/locks").trim_end_matches('/').to_owned();
        let acls = match options.text("acl") {
            Some("creator") => Acls::creator_all(),
            _ => Acls::anyone_all(),
        };
        let full = role == Role::FloorKeys;
        let made = Mutex::default();
        Ok(Box::new(Connected { client, prefix, acls, full, made }) as Box<dyn Client>)
    })
}

struct Connected {
    client: zookeeper_client::Client,
    prefix: String,
    acls: Acls<'static>,
    full: bool,
    /// The directories of this client's names.
    made: Mutex<Vec<String>>,
}

#[async_trait]
impl Client for Connected {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let directory = format!("{}/{}", self.prefix, LockName::new(own(name))?.escaped());
        let options = CreateMode::Persistent.with_acls(self.acls);
        self.client.mkdir(&directory, &options).await?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(directory.clone());
        let (stem, data) = match self.full {
            true => ("_c_00000000-0000-0000-0000-000000000000-lock-", NOTE),
            false => ("n-", ""),
        };
        let (client, acls) = (self.client.clone(), self.acls);
        let stem = format!("{directory}/{stem}");
        Ok(Box::new(Node { client, acls, directory, stem, data, node: String::new() }))
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { client, made, .. } = *self;
        for directory in made.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match client.delete(&directory, None).await {
                // A round that was cut short has left a node, which ends with the session.
                Ok(()) | Err(Error::NotEmpty | Error::NoNode) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

struct Node {
    client: zookeeper_client::Client,
    acls: Acls<'static>,
    directory: String,
    /// The path of the nodes, without the sequence.
    stem: String,
    data: &'static str,
    /// The path of the node that stands.
    node: String,
}

#[async_trait]
impl Worker for Node {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let options = CreateMode::EphemeralSequential.with_acls(self.acls);
        // Both requests are queued before either is awaited.
        let (create, list) = (
            self.client.create(&self.stem, self.data.as_bytes(), &options),
            self.client.list_children(&self.directory),
        );
        let (_, sequence) = create.await?;
        let listed = list.await?.len();
        self.node = format!("{}{sequence}", self.stem);
        match listed {
            1 => Ok(None),
            _ => Err(format!("ZooKeeper has {listed} nodes in {}", self.directory).into()),
        }
    }

    async fn release(&mut self) -> Result<(), Failure> {
        Ok(self.client.delete(&self.node, None).await?)
    }
}
