//! A login that changes while locks are held and waited for.

use std::{fs, path::PathBuf, time::Duration};

use lock_core::{Error, Locks};
use lock_lab::{Authority, ZooKeeper};
use lock_zk::client::{Acl, AuthId, Permission};

use crate::support::*;

const OLD: &str = "f1rst";
const NEW: &str = "s3cond";
/// The login with the new password, as ZooKeeper shows it: its SHA-1 in base64.
const NEW_DIGEST: &str = "me:f3tLgpuEhhM9QFUW9+GiCzyg+Ws=";
/// The same of another user.
const NEXT_DIGEST: &str = "next:++D4k+vtZAIPfKwvPz+eYDKCpyY=";
/// Lasts on a busy machine.
const TTL: Duration = Duration::from_secs(5);

/// A server over TLS whose nodes belong to a login with the password of a file.
struct Protected {
    server: ZooKeeper,
    password: PathBuf,
    authority: Authority,
}

impl Protected {
    async fn start() -> Self {
        let authority = Authority::new().unwrap();
        let issued = authority.server(&["127.0.0.1"]).unwrap();
        let server = lab().tls(issued.certificate(), issued.key()).login("me", OLD);
        let server = started(server).await;
        let password = authority.file().with_file_name("password");
        fs::write(&password, OLD).unwrap();
        Self { server, password, authority }
    }

    fn url(&self) -> String {
        let (ca, password) = (self.authority.file().display(), self.password.display());
        format!(
            "zookeeper://me@{}?tls=verify&ca={ca}&password_file={password}&acl=creator&ttl=5s",
            self.server.secure_addr()
        )
    }

    async fn open(&self) -> Locks {
        open(&self.url()).await
    }

    /// What an operator does: all nodes belong to the new password alone.
    async fn rotate(&self, names: &[&str]) {
        self.give(NEW_DIGEST, names).await;
        fs::write(&self.password, format!("{NEW}\n")).unwrap();
    }

    /// Gives all nodes to a login, and to no other.
    async fn give(&self, login: &str, names: &[&str]) {
        let operator = patient().with_auth("digest", format!("me:{OLD}").as_bytes());
        let operator = operator.connect(&self.server.addr().to_string()).await.unwrap();
        let ours = [Acl::new(Permission::ALL, AuthId::new("digest", login))];
        let names = names.iter().map(|name| format!("/locks/{name}"));
        for path in names.chain(["/locks".to_owned(), "/".to_owned()]) {
            operator.set_acl(&path, &ours, None).await.unwrap();
        }
        assert!(operator.list_children("/locks").await.is_err(), "the old login still serves");
    }
}

#[tokio::test]
async fn locks_and_waiters_outlive_a_new_password() {
    let protected = Protected::start().await;
    let (locks, others) = (protected.open().await, protected.open().await);
    let first = locks.lock("a").unwrap().acquire().await.unwrap();
    let kept = locks.lock("b").unwrap().acquire().await.unwrap();
    let waiter = queue_up(&others, others.lock("a").unwrap(), "a", 1).await;
    protected.rotate(&["a", "b"]).await;

    // Each renewal is refused until the password is read anew.
    outlives(&first, TTL).await;
    assert!(kept.is_valid(), "{kept:?}");
    let (token, end) = (first.token(), first.held());
    first.release().await.unwrap();
    let second = soon("the waiter holds", waiter).await.unwrap().unwrap();
    assert!(second.token() > token, "{end:?}");
    second.release().await.unwrap();
    kept.release().await.unwrap();
    for name in ["a", "b", "c"] {
        locks.lock(name).unwrap().acquire().await.unwrap().release().await.unwrap();
    }
    let shown = format!("{locks:?} {others:?}");
    assert!(!shown.contains(OLD) && !shown.contains(NEW), "{shown}");

    // A client that begins now has the new password alone; one that keeps the old one is refused.
    let later = protected.open().await;
    later.lock("d").unwrap().acquire().await.unwrap().release().await.unwrap();
    fs::write(&protected.password, OLD).unwrap();
    let error = driver(&protected.url()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

#[tokio::test]
async fn a_password_that_is_wrong_at_first_is_told_and_the_next_one_serves() {
    let protected = Protected::start().await;
    let locks = protected.open().await;
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    // The operator has changed the nodes before the file.
    protected.rotate(&["a"]).await;
    fs::write(&protected.password, OLD).unwrap();
    let error = soon("a refusal", locks.lock("x").unwrap().acquire()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    fs::write(&protected.password, NEW).unwrap();
    locks.lock("x").unwrap().acquire().await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn locks_and_waiters_outlive_another_user() {
    let protected = Protected::start().await;
    let user = protected.password.with_file_name("user");
    fs::write(&user, "me\n").unwrap();
    let url = format!("{}&user_file={}", protected.url().replace("me@", ""), user.display());
    let (locks, others) = (open(&url).await, open(&url).await);
    let held = locks.lock("a").unwrap().acquire().await.unwrap();
    let waiter = queue_up(&others, others.lock("a").unwrap(), "a", 1).await;
    protected.give(NEXT_DIGEST, &["a"]).await;

    // Half a change is no login: ZooKeeper takes it for one of a user without rights.
    fs::write(&user, "next\n").unwrap();
    let error = soon("a refusal", locks.lock("x").unwrap().acquire()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    fs::write(&protected.password, NEW).unwrap();
    outlives(&held, TTL).await;
    assert!(!waiter.is_finished());
    held.release().await.unwrap();
    soon("the waiter holds", waiter).await.unwrap().unwrap().release().await.unwrap();
    for name in ["a", "b"] {
        locks.lock(name).unwrap().acquire().await.unwrap().release().await.unwrap();
    }

    // A client that begins now has the new login alone.
    let later = open(&url).await;
    later.lock("c").unwrap().acquire().await.unwrap().release().await.unwrap();
    let shown = format!("{locks:?} {later:?}");
    assert!(!shown.contains(OLD) && !shown.contains(NEW), "{shown}");
}
