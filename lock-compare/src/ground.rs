//! Where an experiment takes place: a private server, an embedded store, or a store in use.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use lock_lab::AnyServer;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::{Failure, Missing, Store};

/// A running store.
pub enum Ground {
    /// A store of this process or of a file, which nobody else uses.
    Embedded {
        /// Its URL.
        url: String,
        /// Its file, which goes with it.
        _folder: Option<TempDir>,
    },
    /// A private server, which ends with this value.
    Private(Box<AnyServer>),
    /// A store in use: nothing may be done to it but what its users do.
    InUse {
        /// Its URL, perhaps with a password.
        url: String,
    },
}

impl Ground {
    /// Starts a store that nobody else uses.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`](lock_lab::LabError::Missing) if its server is not installed.
    pub async fn start(store: Store) -> Result<Self, Failure> {
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
    pub fn url(&self) -> String {
        match self {
            Self::Embedded { url, .. } | Self::InUse { url } => url.clone(),
            Self::Private(server) => server.url(),
        }
    }

    /// The private server, if it is one.
    pub fn server(&self) -> Option<&AnyServer> {
        match self {
            Self::Private(server) => Some(server),
            _ => None,
        }
    }
}

/// The stores of a run: a server is started when it is first asked for, and serves all experiments
/// that do no harm to it. An embedded store serves one claim: whoever stands still in the middle of a
/// request to SQLite keeps all others out of its file.
#[derive(Default)]
pub(crate) struct Grounds {
    shared: Mutex<BTreeMap<(Store, u8), Started>>,
    in_use: BTreeMap<Store, String>,
}

type Started = Arc<OnceCell<Arc<Ground>>>;

impl Grounds {
    /// Private stores, but for those that are given by URL.
    pub(crate) fn new(in_use: BTreeMap<Store, String>) -> Self {
        Self { in_use, ..Self::default() }
    }

    /// Whether a store is one in use.
    pub(crate) fn is_in_use(&self, store: Store) -> bool {
        self.in_use.contains_key(&store)
    }

    /// The store that all of a claim share, or all claims if it is a server.
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

    /// A store for one experiment alone.
    pub(crate) async fn own(&self, store: Store) -> Result<Ground, Failure> {
        if self.is_in_use(store) {
            let what = "it needs a server of its own, and this one is in use";
            return Err(Missing::new(what, "leave --store away for this claim").into());
        }
        Ground::start(store).await
    }
}
