//! The place of an experiment: a private server, an embedded store, or a store in use.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use lock_lab::AnyServer;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::{Failure, Missing, Store};

pub(crate) enum Ground {
    /// A private store in this process or in a file.
    Embedded {
        url: String,
        /// Its folder, deleted together with it.
        _folder: Option<TempDir>,
    },
    /// A private server. Dropping the value ends it.
    Private(Box<AnyServer>),
    /// A store in use: only actions of ordinary users are allowed.
    InUse {
        /// Its URL, perhaps with a password.
        url: String,
    },
}

impl Ground {
    pub(crate) async fn start(store: Store) -> Result<Self, Failure> {
        Ok(match store {
            Store::Memory => {
                let url = format!("memory:compare-{}", Uuid::new_v4().simple());
                Self::Embedded { url, _folder: None }
            }
            Store::Sqlite => {
                let folder = tempfile::tempdir()?;
                let url = format!("sqlite:{}/locks.db", folder.path().display());
                Self::Embedded { url, _folder: Some(folder) }
            }
            _ => Self::Private(Box::new(AnyServer::start(store.scheme()).await?)),
        })
    }

    /// The URL for distlock.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Embedded { url, .. } | Self::InUse { url } => url.clone(),
            Self::Private(server) => server.url(),
        }
    }

    pub(crate) fn server(&self) -> Option<&AnyServer> {
        match self {
            Self::Private(server) => Some(server),
            _ => None,
        }
    }
}

/// The stores of a run. A server starts at its first use, and serves all experiments that do not
/// harm it. An embedded store serves one claim: a client that stands still during a SQLite request
/// blocks all others.
#[derive(Default)]
pub(crate) struct Grounds {
    shared: Mutex<BTreeMap<(Store, u8), Started>>,
    in_use: BTreeMap<Store, String>,
}

type Started = Arc<OnceCell<Arc<Ground>>>;

impl Grounds {
    /// Private stores, except for the stores given by URL.
    pub(crate) fn new(in_use: BTreeMap<Store, String>) -> Self {
        Self { in_use, ..Self::default() }
    }

    pub(crate) fn is_in_use(&self, store: Store) -> bool {
        self.in_use.contains_key(&store)
    }

    /// Returns the store shared by one claim, or by all claims if it is a server.
    pub(crate) async fn shared(&self, store: Store, claim: u8) -> Result<Arc<Ground>, Failure> {
        let start = || async {
            Ok(Arc::new(match self.in_use.get(&store) {
                Some(url) => Ground::InUse { url: url.clone() },
                None => Ground::start(store).await?,
            }))
        };
        let whose = if store.is_embedded() { claim } else { 0 };
        let started = self.started(store, whose);
        started.get_or_try_init(start).await.cloned()
    }

    fn started(&self, store: Store, claim: u8) -> Started {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.entry((store, claim)).or_default().clone()
    }

    /// Returns a store for one experiment only.
    pub(crate) async fn own(&self, store: Store) -> Result<Ground, Failure> {
        if self.is_in_use(store) {
            let what = "it needs a server of its own, and this one is in use";
            return Err(Missing::new(what, "leave --store away for this claim").into());
        }
        Ground::start(store).await
    }
}
