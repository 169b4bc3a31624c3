//! Answers of the servers about themselves: how many vote, whether one stands alone, and whether
//! this login may read the locks.

use std::sync::Weak;

use lock_core::{Clock, Error, Result, keep::errors::misconfigured};
use zookeeper_client::{CreateMode, Error as ZkError};

use crate::{
    error::{self, Meaning, STORE},
    session::Session,
    wire::questions,
};

/// A version that no node has.
const NEVER: i32 = i32::MAX;

/// Returns how many servers vote; 0 if the server does not know of others. `None` if the server
/// does not say: it is older than 3.5, or forbids it.
pub(crate) async fn members(session: &Session) -> Option<usize> {
    let (config, _) = session.begin().ok()?.config().await.ok()?;
    let config = String::from_utf8_lossy(&config);
    let servers = config.lines().filter(|line| line.starts_with("server."));
    Some(servers.filter(|line| !line.contains(":observer")).count())
}

/// Checks that this login may read the directory of the locks. A wrong password is no error in
/// ZooKeeper: the client then has another login, and is refused only where permissions are set. The
/// check follows a `sync`, since a server that lags behind the others may not know a new chroot
/// yet.
pub(crate) async fn check_access(session: &Session) -> Result<()> {
    match look(session).await {
        // The password may have changed since it was read.
        Err(Error::Denied { .. }) if session.log_in_anew().await => look(session).await,
        result => result,
    }
}

async fn look(session: &Session) -> Result<()> {
    let (config, exchange) = (&session.config, session.begin()?);
    let (synced, root, prefix) =
        tokio::join!(exchange.sync("/"), exchange.stat("/"), exchange.data(&config.prefix));
    synced.map_err(|error| error::read_failed("connect", error))?;
    if let Ok(None) = root {
        let chroot = &config.chroot;
        let why = format!(
            "there is no chroot {chroot}: create the node, and those above it, such as with \
             zkCli's `create {chroot}`, or name another one"
        );
        return Err(misconfigured(STORE, "connect", why));
    }
    match prefix {
        Ok(_) => Ok(()),
        Err(ZkError::NoNode) => may_create(session).await,
        Err(error) => Err(error::read_failed("connect", error)),
    }
}

/// Checks that this login may create the directory of the locks, or the first one above it, or may
/// at least read there. The creation stands in a transaction that never succeeds.
async fn may_create(session: &Session) -> Result<()> {
    let exchange = session.begin()?;
    let prefix = &session.config.prefix;
    let ends = prefix.rmatch_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
    for path in std::iter::once(prefix.len()).chain(ends).map(|end| &prefix[..end]) {
        let options = CreateMode::Persistent.with_acls(session.config.access.acls());
        let mut multi = exchange.transaction();
        let added = multi.add_create(path, b"", &options);
        // Not of the root, which this login need not be able to read.
        let added = added.and_then(|()| multi.add_check_version(path, NEVER));
        added.map_err(|error| error::read_failed("connect", error))?;
        match exchange.commit(multi).await.map_err(ZkError::from) {
            // The directory above it does not exist either.
            Err(ZkError::NoNode) => {}
            Err(error) if error::meaning(&error) == Meaning::Denied => {
                let above = path.rfind('/').map_or("/", |end| &path[..end.max(1)]);
                return match exchange.list(above).await {
                    Err(_) => Err(error::forbidden("connect", "create the prefix", error)),
                    // A login that may only read sees holders and waiters.
                    Ok(_) => Ok(()),
                };
            }
            _ => break,
        }
    }
    Ok(())
}

/// Asks whether the server of this connection stands alone: it says so, and has no members.
///
/// One of the two does not suffice. An ensemble that began as a standalone server may have lost the
/// list of its members, and behind one address there may be several servers.
pub(crate) async fn ask_deployment(session: Weak<Session>) {
    let Some(alive) = session.upgrade() else { return };
    let Ok(exchange) = alive.begin() else { return };
    let (deadline, route) = (alive.deadline.clone(), alive.route.clone());
    drop(alive);
    let sent = exchange.sent;
    let members = Clock::Boot.timeout(deadline.ttl / 2, exchange.config()).await;
    // It has the client: the session could not be closed during the next question.
    drop(exchange);
    if let Some(Ok((members, _))) = members
        && members.is_empty()
        && questions::says_alone(&route.ask_all(b"srvr").await)
    {
        deadline.set_standalone(true);
        // Only now the answer is known to prove something. After an outage there may be no time for
        // another answer.
        deadline.count(sent, false);
        let _ = session.upgrade().map(|session| session.renew_all());
    }
}
