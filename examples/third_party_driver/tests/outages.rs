//! Cases that no property covers: outages that a driver without a queue survives or reports, a
//! close, and entries in the directory that do not belong to a lock.

use std::{fs, io, os::unix::fs::symlink, path::PathBuf, time::Duration};

use lock_core::{ConnectionState, Error, LockName, Locks};
use third_party_driver::Directory;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(20);
const TTL: Duration = Duration::from_secs(3);

/// A directory, and a path to it that can be cut.
struct Shared {
    root: PathBuf,
    way: PathBuf,
    _directory: tempfile::TempDir,
}

impl Shared {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [root, way] = ["locks", "way"].map(|name| directory.path().join(name));
        fs::create_dir(&root).unwrap();
        symlink(&root, &way).unwrap();
        Self { root, way, _directory: directory }
    }

    fn near(&self) -> Locks {
        Locks::new(Directory::driver(&self.root))
    }

    fn far(&self) -> Locks {
        Locks::new(Directory::driver(&self.way))
    }

    /// The path becomes a file, so nothing is reached through it.
    fn cut(&self) {
        fs::remove_file(&self.way).and_then(|()| fs::write(&self.way, "")).unwrap();
    }

    fn heal(&self) {
        fs::remove_file(&self.way).and_then(|()| symlink(&self.root, &self.way)).unwrap();
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let looked = timeout(PATIENCE, async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    looked.await.unwrap_or_else(|_| panic!("not yet: {what}"));
}

#[tokio::test]
async fn a_short_outage_costs_neither_a_lock_nor_a_wait() {
    let shared = Shared::new();
    let (near, far) = (shared.near(), shared.far());
    // Long compared to the outage, also on a busy machine.
    let ttl = Duration::from_secs(60);
    let held = far.lock("held").unwrap().ttl(ttl).acquire().await.unwrap();
    let busy = near.lock("busy").unwrap().ttl(ttl).acquire().await.unwrap();
    let waiter = tokio::spawn(far.lock("busy").unwrap().ttl(ttl).acquire());
    shared.cut();
    until("the outage is noticed", || far.connection() != ConnectionState::Connected).await;
    shared.heal();
    until("its end is noticed", || far.connection() == ConnectionState::Connected).await;
    assert!(held.is_valid());
    held.renew().await.unwrap();
    busy.release().await.unwrap();
    let granted = timeout(PATIENCE, waiter).await.unwrap().unwrap().unwrap();
    granted.release().await.unwrap();
    held.release().await.unwrap();
    assert_eq!(fs::read_dir(&shared.root).unwrap().count(), 0);
}

#[tokio::test]
async fn an_outage_of_a_ttl_is_an_error_and_loses_held_locks() {
    let shared = Shared::new();
    let far = shared.far();
    let held = far.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    shared.cut();
    let error = timeout(PATIENCE, far.lock("other").unwrap().ttl(TTL).acquire()).await.unwrap();
    assert!(matches!(error, Err(Error::Unavailable { .. })), "{error:?}");
    timeout(PATIENCE, held.lost()).await.unwrap();
    let error = far.lock("other").unwrap().try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

#[tokio::test]
async fn a_close_gives_everything_back() {
    let shared = Shared::new();
    let (a, b) = (shared.near(), shared.near());
    let held = a.lock("held").unwrap().acquire().await.unwrap();
    a.close().await.unwrap();
    assert!(!held.is_valid());
    b.lock("held").unwrap().try_acquire().await.unwrap().unwrap().release().await.unwrap();
    assert!(a.lock("held").unwrap().try_acquire().await.unwrap_err().is_closed());
    assert_eq!(fs::read_dir(&shared.root).unwrap().count(), 0);
}

/// A lock that a crashed process has left, as its file shows: of this boot, of another boot, and of
/// another program.
#[tokio::test]
async fn a_crashed_holders_lock_is_cleared_and_a_foreign_file_is_not() -> io::Result<()> {
    let shared = Shared::new();
    let locks = shared.near();
    let id = "0d5e3c8e-64c5-4b0f-9d1c-4f6b3f6d2a11";
    for (name, file) in [
        ("over", format!("{id}.1")),
        ("another-boot", format!("{id}.9000000000000000")),
        ("another-program", "pid".to_owned()),
    ] {
        fs::create_dir(shared.root.join(name))?;
        fs::write(shared.root.join(name).join(file), "someone else")?;
    }
    fs::create_dir(shared.root.join("empty"))?;
    for name in ["over", "another-boot", "empty"] {
        assert_eq!(locks.inspect(name).await.unwrap(), [], "{name}");
        let guard = locks.lock(name).unwrap().try_acquire().await.unwrap().expect(name);
        guard.release().await.unwrap();
    }
    let error = locks.lock("another-program").unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
    assert_eq!(locks.names("").await.unwrap(), []);
    let long = "n".repeat(LockName::MAX_BYTES);
    let error = locks.lock(long).unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
    Ok(())
}
