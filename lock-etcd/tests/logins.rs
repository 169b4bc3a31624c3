//! Logins whose tokens expire and whose passwords are replaced, and that nothing shows a password.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use lock_core::{Clock, Error, LockGuard, Locks, StoreUrl};
use lock_etcd::{EtcdConfig, EtcdLock};
use lock_lab::{Etcd, Proxy};
use tempfile::TempDir;

use crate::support::{bounded::bounded, *};

/// A password in a file, as a secret store writes it.
struct PasswordFile(TempDir);

impl PasswordFile {
    fn new(password: &str) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.write(password);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("password")
    }

    fn write(&self, password: &str) {
        std::fs::write(self.path(), format!("{password}\n")).unwrap();
    }
}

/// An etcd with a user `me` that may use `locks/`.
async fn etcd_with(password: &str, args: &[&str]) -> Etcd {
    let builder = Etcd::builder().in_memory().arg("--bcrypt-cost=4");
    let builder = args.iter().fold(builder, |builder, arg| builder.arg(arg));
    let etcd = builder.start().await.unwrap();
    etcd.demand_logins(&[("me", password, "locks/")]).await.unwrap();
    etcd
}

fn url(proxy: &Proxy, file: &Path) -> String {
    let file = file.display();
    format!("etcd://me@{}?prefix=locks/&ttl=12s&password_file={file}", proxy.addr())
}

/// A client of the user `root`, whose password stays.
async fn root(etcd: &Etcd) -> Locks {
    locks(&format!("etcd://root:{}@{}?prefix=locks/", etcd.root_password(), etcd.addr())).await
}

async fn hold(locks: &Locks, name: &str) -> LockGuard {
    soon(locks.lock(name).unwrap().acquire()).await.unwrap()
}

/// Waits until a held lock is only valid because it was renewed after this call.
async fn until_renewed(guard: &LockGuard) {
    let end = Clock::Boot.now() + Duration::from_secs(12);
    until("it was renewed", || async { Clock::Boot.now() > end || !guard.is_valid() }).await;
    assert!(guard.is_valid(), "it was lost");
}

#[tokio::test]
async fn no_lock_is_lost_and_no_place_when_the_password_is_replaced() {
    let (etcd, file) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let (ours, theirs) =
        (locks(&url(&proxy, &file.path())).await, locks(&url(&proxy, &file.path())).await);
    let held = hold(&ours, "held").await;
    let waiting = tokio::spawn(theirs.lock("held").unwrap().acquire());
    until_queued(&ours, "held", 2).await;

    // The file first, and a new connection before etcd knows the new password.
    file.write("second");
    proxy.reset();
    hold(&ours, "job").await.release().await.unwrap();
    etcd.set_password("me", "second").await.unwrap();
    proxy.reset();
    hold(&ours, "job").await.release().await.unwrap();
    hold(&theirs, "job").await.release().await.unwrap();

    // etcd first: until the file has it, a new login is refused.
    etcd.set_password("me", "third").await.unwrap();
    proxy.reset();
    let refused = soon(async {
        loop {
            match ours.lock("job").unwrap().acquire().await {
                Err(error @ Error::Denied { .. }) => return error,
                Err(Error::Unavailable { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(refused.await.to_string().contains("authentication failed"));
    file.write("third");
    soon(async { while ours.lock("job").unwrap().try_acquire().await.is_err() {} }).await;

    until_renewed(&held).await;
    held.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn no_lock_is_lost_and_no_place_when_another_user_takes_over() {
    let (etcd, password) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let user = PasswordFile::new("me");
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let (user_file, password_file) = (user.path(), password.path());
    let url = format!(
        "etcd://{}?prefix=locks/&ttl=12s&user_file={}&password_file={}",
        proxy.addr(),
        user_file.display(),
        password_file.display()
    );
    let (ours, theirs) = (locks(&url).await, locks(&url).await);
    let held = hold(&ours, "held").await;
    let waiting = tokio::spawn(theirs.lock("held").unwrap().acquire());
    until_queued(&ours, "held", 2).await;
    etcd.add_user("next", "second", "me").await.unwrap();

    // Half a change is no login, and the earlier one still is.
    user.write("next");
    proxy.reset();
    hold(&ours, "job").await.release().await.unwrap();
    // Neither is one now.
    etcd.remove_user("me").await.unwrap();
    proxy.reset();
    locked_out(&ours, Duration::from_secs(2)).await;
    assert!(held.is_valid() && !waiting.is_finished());
    password.write("second");
    let_in(&ours).await;
    until_renewed(&held).await;
    held.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
    let shown = format!("{ours:?} {theirs:?}");
    assert!(!shown.contains("first") && !shown.contains("second"), "{shown}");
}

/// Waits until etcd refuses the login of these locks, and for this long after that.
async fn locked_out(locks: &Locks, time: Duration) {
    let refused = async || locks.lock("job").unwrap().try_acquire().await;
    let is_denied = async || matches!(refused().await, Err(Error::Denied { .. }));
    until("the login is refused", is_denied).await;
    let end = Clock::Boot.now() + time;
    until("time passes", async || {
        assert!(refused().await.is_err(), "the login is not refused any more");
        Clock::Boot.now() > end
    })
    .await;
}

/// Waits until these locks have a login again.
async fn let_in(locks: &Locks) {
    until("it has a login", async || locks.lock("job").unwrap().try_acquire().await.is_ok()).await;
}

#[tokio::test]
async fn a_waiter_keeps_its_place_while_etcd_has_the_new_password_and_the_file_has_not() {
    let (etcd, file) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&url(&proxy, &file.path())).await;
    let theirs = root(&etcd).await;
    let held = hold(&theirs, "held").await;
    let waiting = tokio::spawn(ours.lock("held").unwrap().acquire());
    until_queued(&theirs, "held", 2).await;
    etcd.set_password("me", "second").await.unwrap();
    proxy.reset();
    locked_out(&ours, Duration::from_secs(2)).await;
    assert!(!waiting.is_finished(), "{:?}", waiting.await);
    file.write("second");
    held.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();

    // A password that cannot be replaced is not waited for.
    let held = hold(&theirs, "held").await;
    let fixed = locks(&format!("etcd://me:second@{}?prefix=locks/&ttl=12s", proxy.addr())).await;
    let waiting = tokio::spawn(fixed.lock("held").unwrap().acquire());
    until_queued(&theirs, "held", 2).await;
    etcd.set_password("me", "third").await.unwrap();
    proxy.reset();
    let error = soon(waiting).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    held.release().await.unwrap();
}

/// A waiter sends no request that counts as a sign of life: only its keep-alives are answered.
#[tokio::test]
async fn a_waiter_that_was_quiet_for_longer_than_its_ttl_keeps_its_place() {
    const TTL: Duration = Duration::from_secs(9);
    let (etcd, file) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&url(&proxy, &file.path()).replace("ttl=12s", "ttl=9s")).await;
    let theirs = root(&etcd).await;
    let held = hold(&theirs, "held").await;
    let waiting = tokio::spawn(ours.lock("held").unwrap().acquire());
    until_queued(&theirs, "held", 2).await;
    tokio::time::sleep(2 * TTL).await;
    etcd.set_password("me", "second").await.unwrap();
    proxy.reset();
    locked_out(&ours, TTL / 3).await;
    assert!(!waiting.is_finished(), "{:?}", waiting.await);
    file.write("second");
    let_in(&ours).await;
    held.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// Releases while etcd refuses the login, `beside` another lock of the same lease or alone.
async fn release_is_done_with_the_next_login(beside: bool) {
    let (etcd, file) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&url(&proxy, &file.path()).replace("ttl=12s", "ttl=30s")).await;
    let root = root(&etcd).await;
    let held = hold(&ours, "held").await;
    let other = if beside { Some(hold(&ours, "other").await) } else { None };
    etcd.set_password("me", "second").await.unwrap();
    let error = soon(held.release()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    // The janitor tries after 1 s and 3 s, and would try again after 7 s.
    locked_out(&ours, Duration::from_millis(3500)).await;
    assert_eq!(root.inspect("held").await.unwrap().len(), 1);
    file.write("second");
    let_in(&ours).await;
    let removed = until("it is removed", async || root.inspect("held").await.unwrap().is_empty());
    bounded("the removal", Duration::from_secs(2), removed).await;
    if let Some(other) = other {
        assert!(other.is_valid());
        other.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_release_beside_another_lock_is_done_with_the_next_login() {
    release_is_done_with_the_next_login(true).await;
}

#[tokio::test]
async fn a_refused_release_of_the_last_lock_is_done_with_the_next_login() {
    release_is_done_with_the_next_login(false).await;
}

#[tokio::test]
async fn an_expired_token_is_renewed_and_no_lock_is_lost() {
    let (etcd, file) =
        (etcd_with("s3cret", &["--auth-token-ttl=1"]).await, PasswordFile::new("s3cret"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&url(&proxy, &file.path())).await;
    let held = hold(&ours, "held").await;
    let logins = async || etcd.counters().await.unwrap().get("rpc.Authenticate");
    // Keep-alives need no token on 3.4, so the token expires meanwhile.
    until_renewed(&held).await;
    let before = logins().await;
    hold(&ours, "job").await.release().await.unwrap();
    assert!(logins().await > before, "the token did not expire");
    // The password that the client knows is not the current one any more.
    file.write("other");
    etcd.set_password("me", "other").await.unwrap();
    assert_eq!(ours.inspect("held").await.unwrap().len(), 1);
    held.release().await.unwrap();
}

/// Each login costs etcd the check of a password: whatever asks for one, a refused one is not
/// repeated at once.
#[tokio::test]
async fn a_refused_login_is_tried_once_a_second() {
    let (etcd, file) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&url(&proxy, &file.path())).await;
    let held = hold(&ours, "held").await;
    let logins = async || etcd.counters().await.unwrap().get("rpc.Authenticate");
    // The lab logs in for its numbers, too.
    let before = logins().await;
    let of_lab = logins().await - before;

    etcd.set_password("me", "second").await.unwrap();
    let (before, began) = (logins().await, Clock::Boot.now());
    for again in 0..200 {
        if again % 50 == 0 {
            proxy.reset();
        }
        let tried = ours.lock("job").unwrap().try_acquire().await;
        let looked = ours.inspect("held").await;
        let denied = |error: &Error| matches!(error, Error::Denied { .. });
        let passing = |error: &Error| matches!(error, Error::Unavailable { .. });
        assert!(tried.as_ref().is_err_and(|e| denied(e) || passing(e)), "{tried:?}");
        assert!(looked.as_ref().is_err_and(|e| denied(e) || passing(e)), "{looked:?}");
    }
    let logins = logins().await - before - of_lab;
    // One at the begin of the time, and one from just before it that the server counts late.
    let most = 2 + Clock::Boot.now().since(began).as_secs();
    assert!((1..=most).contains(&logins), "{logins} logins, at most {most} are allowed");

    // Another password is tried at once.
    file.write("second");
    hold(&ours, "job").await.release().await.unwrap();
    held.release().await.unwrap();
}

/// A login has the limit of connecting, and not that of a request.
#[tokio::test]
async fn a_slow_check_of_the_password_is_waited_for() {
    // How long a check takes depends on the machine. Each cost is twice the one before.
    for cost in 12..16 {
        let builder = Etcd::builder().in_memory().arg(format!("--bcrypt-cost={cost}"));
        let etcd = builder.start().await.unwrap();
        etcd.demand_logins(&[("me", "first", "locks/")]).await.unwrap();
        let url = format!("etcd://me:first@{}?prefix=locks/&request_timeout=300ms", etcd.addr());
        let connect = async |limit: &str| {
            let config = StoreUrl::parse(&format!("{url}&connect_timeout={limit}")).unwrap();
            EtcdLock::connect(EtcdConfig::from_url(&config).unwrap()).await
        };
        if let Err(refused) = connect("300ms").await {
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
            connect("30s").await.unwrap();
            return;
        }
    }
    panic!("every check is too fast");
}

/// The round trips of the login take more than half of the limit of connecting.
#[tokio::test]
async fn a_new_login_has_as_much_time_as_the_first_one() {
    let (etcd, file) = (etcd_with("first", &[]).await, PasswordFile::new("first"));
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let limits = "request_timeout=10s&connect_timeout=3s";
    let url = url(&proxy, &file.path()).replace("ttl=12s", "ttl=30s");
    let ours = locks(&format!("{url}&{limits}")).await;
    hold(&ours, "job").await.release().await.unwrap();
    // The token is void from now on.
    etcd.set_password("me", "first").await.unwrap();
    proxy.delay(Duration::from_secs(1));
    let acquire = ours.lock("job").unwrap().acquire();
    // A refused request, a login, and the request again, of 2 s each.
    let limit = Duration::from_secs(11);
    let acquired = bounded("an acquire with one login", limit, acquire).await.unwrap();
    proxy.delay(Duration::ZERO);
    acquired.release().await.unwrap();
}

#[tokio::test]
async fn a_password_comes_from_the_url_the_environment_or_a_file() {
    // It is set for every test.
    let variable = "CARGO_MANIFEST_DIR";
    let password = std::env::var(variable).unwrap();
    let escaped = password.replace('/', "%2F");
    let (etcd, file) = (etcd_with(&password, &[]).await, PasswordFile::new(&password));
    let host = etcd.addr();
    for url in [
        format!("etcd://me:{escaped}@{host}?prefix=locks/"),
        format!("etcd://me@{host}?prefix=locks/&password_env={variable}"),
        format!("etcd://me@{host}?prefix=locks/&password_file={}", file.path().display()),
    ] {
        hold(&locks(&url).await, "job").await.release().await.unwrap();
    }
    for url in [
        format!("etcd://me@{host}?password_env=NO_SUCH_VARIABLE"),
        format!("etcd://me@{host}?password_file=/no/such/file"),
    ] {
        let config = EtcdConfig::from_url(&StoreUrl::parse(&url).unwrap());
        let error = match config {
            Ok(config) => EtcdLock::connect(config).await.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains("NO_SUCH_VARIABLE") || error.contains("/no/such/file"), "{error}");
    }
}
