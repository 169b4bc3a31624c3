//! An imitation of the lock of Go's `concurrency` package on etcd. A session is a lease, a place in
//! the queue is a key `name/<lease>`, and the key with the lowest create revision holds the lock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, EventType, GetOptions, PutOptions, SortOrder,
    SortTarget, Txn, TxnOp, TxnOpResponse, WatchOptions,
};
use lock_core::StoreUrl;
use tokio::{task::AbortHandle, time::sleep};

use crate::{Contestant, Failure, Granted, Hold, Nature, Player};

/// The lock, with switches for parts that some versions and some readers leave out.
#[derive(Clone, Debug)]
pub(crate) struct GoMutex {
    url: String,
    checks: bool,
    keeps_alive: bool,
    separator: &'static str,
}

impl GoMutex {
    /// The lock of version 3.5.
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), checks: true, keeps_alive: true, separator: "/" }
    }

    /// After waiting it does not check whether its own key still exists, as in version 3.4.
    pub(crate) fn unchecked(mut self) -> Self {
        self.checks = false;
        self
    }

    /// The session's lease is not kept alive.
    pub(crate) fn orphaned(mut self) -> Self {
        self.keeps_alive = false;
        self
    }

    /// Keys begin with the name itself, not with `name/`.
    pub(crate) fn without_separator(mut self) -> Self {
        self.separator = "";
        self
    }

    pub(crate) async fn session(&self, ttl: Duration) -> Result<Session, Failure> {
        let mut client = connect(&self.url).await?;
        let lease = client.lease_grant(i64::try_from(ttl.as_secs())?, None).await?.id();
        let alive = Arc::new(AtomicBool::new(true));
        let keeper = match self.keeps_alive {
            true => Some(keep_alive(client.clone(), lease, ttl / 3, alive.clone()).await?),
            false => None,
        };
        Ok(Session { client, lease, alive, keeper, lock: self.clone() })
    }
}

pub(crate) async fn connect(url: &str) -> Result<Client, Failure> {
    let url = StoreUrl::parse(url)?;
    let login = url.user().zip(url.password());
    let options = login.map(|(user, word)| ConnectOptions::new().with_user(user, word));
    Ok(Client::connect(url.hosts(2379), options).await?)
}

/// Renews the lease until the store reports that it is gone.
pub(crate) async fn keep_alive(
    mut client: Client,
    lease: i64,
    pause: Duration,
    alive: Arc<AtomicBool>,
) -> Result<AbortHandle, Failure> {
    let (mut keeper, mut answers) = client.lease_keep_alive(lease).await?;
    let keep = async move {
        loop {
            sleep(pause).await;
            let asked = keeper.keep_alive().await;
            let answer = answers.message().await;
            if asked.is_err() || !answer.is_ok_and(|it| it.is_some_and(|it| it.ttl() > 0)) {
                alive.store(false, Relaxed);
                return;
            }
        }
    };
    Ok(tokio::spawn(keep).abort_handle())
}

/// A lease, with the task that keeps it alive. Dropping it orphans the lease.
pub(crate) struct Session {
    client: Client,
    pub(crate) lease: i64,
    alive: Arc<AtomicBool>,
    keeper: Option<AbortHandle>,
    lock: GoMutex,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.keeper.iter().for_each(AbortHandle::abort);
    }
}

impl Session {
    fn prefix(&self, name: &str) -> String {
        format!("{name}{}", self.lock.separator)
    }

    /// The key of this session's place in the queue.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{:x}", self.prefix(name), self.lease)
    }

    pub(crate) async fn close(&self) -> Result<(), Failure> {
        self.keeper.iter().for_each(AbortHandle::abort);
        self.client.lease_client().revoke(self.lease).await?;
        Ok(())
    }

    /// Joins the queue. Returns the create revision of the own key.
    pub(crate) async fn enqueue(&self, name: &str) -> Result<i64, Failure> {
        let key = self.key(name);
        let put = TxnOp::put(key.as_str(), "", Some(PutOptions::new().with_lease(self.lease)));
        let is_new = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
        // An existing key of this session counts as the caller's own.
        let own = TxnOp::get(key.as_str(), None);
        let txn = Txn::new().when([is_new]).and_then([put]).or_else([own]);
        let answer = self.client.kv_client().txn(txn).await?;
        if let Some(TxnOpResponse::Get(own)) = answer.op_responses().first() {
            return Ok(own.kvs().first().ok_or("the own key is gone")?.create_revision());
        }
        Ok(answer.header().ok_or("etcd's answer has no header")?.revision())
    }

    /// Waits until all keys before the own one are gone, the newest first, as `waitDeletes` does.
    pub(crate) async fn wait_for_others(&self, name: &str, revision: i64) -> Result<(), Failure> {
        let newest = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Descend)
            .with_limit(1)
            .with_max_create_revision(revision - 1);
        loop {
            let before =
                self.client.kv_client().get(self.prefix(name), Some(newest.clone())).await?;
            let Some(last) = before.kvs().first() else { return Ok(()) };
            let from = before.header().ok_or("etcd's answer has no header")?.revision() + 1;
            self.until_deleted(last.key(), from).await?;
        }
    }

    async fn until_deleted(&self, key: &[u8], from: i64) -> Result<(), Failure> {
        let options = WatchOptions::new().with_start_revision(from);
        let mut events = self.client.watch_client().watch(key, Some(options)).await?;
        while let Some(answer) = events.message().await? {
            if answer.events().iter().any(|event| event.event_type() == EventType::Delete) {
                return Ok(());
            }
        }
        Err("lost watcher waiting for delete".into())
    }

    /// Whether the own key exists with this create revision.
    pub(crate) async fn is_in_line(&self, name: &str, revision: i64) -> Result<bool, Failure> {
        self.has(name, self.lease, revision).await
    }

    /// Whether a lease's key exists with this create revision.
    pub(crate) async fn has(&self, name: &str, lease: i64, revision: i64) -> Result<bool, Failure> {
        let key = format!("{}{lease:x}", self.prefix(name));
        let kept = self.client.kv_client().get(key, None).await?;
        Ok(kept.kvs().first().is_some_and(|kept| kept.create_revision() == revision))
    }

    async fn leave(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.client.kv_client().delete(self.key(name), None).await?.deleted() > 0)
    }
}

#[async_trait]
impl Contestant for GoMutex {
    fn label(&self) -> String {
        let version = match (self.checks, self.keeps_alive, self.separator) {
            (false, ..) => " of 3.4, which does not check its own key",
            (_, false, _) => " without keep-alive",
            (.., "") => " without the separator",
            _ => "",
        };
        format!("Go's concurrency.Mutex{version}")
    }

    fn nature(&self) -> Nature {
        Nature::Imitation
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(GoClient { lock: self.clone(), session: Default::default() }))
    }
}

/// One client. Its session begins with its first lock.
struct GoClient {
    lock: GoMutex,
    session: tokio::sync::OnceCell<Arc<Session>>,
}

#[async_trait]
impl Player for GoClient {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        let begin = || async { Ok::<_, Failure>(Arc::new(self.lock.session(ttl).await?)) };
        let session = self.session.get_or_try_init(begin).await?.clone();
        let revision = session.enqueue(name).await?;
        match tokio::time::timeout(wait, session.wait_for_others(name, revision)).await {
            Ok(done) => done?,
            Err(_) => {
                session.leave(name).await?;
                return Ok(None);
            }
        }
        if self.lock.checks && !session.is_in_line(name, revision).await? {
            return Err("etcd: session expired".into());
        }
        Ok(Some(Box::new(GoHold { session, name: name.to_owned(), revision })))
    }

    async fn close(&self) -> Result<(), Failure> {
        match self.session.get() {
            Some(session) => session.close().await,
            None => Ok(()),
        }
    }
}

struct GoHold {
    session: Arc<Session>,
    name: String,
    revision: i64,
}

#[async_trait]
impl Hold for GoHold {
    fn token(&self) -> Option<u64> {
        u64::try_from(self.revision).ok()
    }

    /// The state of `Session.Done`.
    fn believes(&self) -> bool {
        self.session.alive.load(Relaxed)
    }

    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        self.session.leave(&self.name).await
    }
}
