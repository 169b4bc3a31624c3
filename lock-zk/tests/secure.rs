//! TLS, logins, and what an error says when one of them is wrong.

use std::{net::SocketAddr, path::Path, time::Duration};

use lock_core::{Error, Locks};
use lock_lab::{Authority, ZooKeeper};
use tokio::sync::OnceCell;

use crate::support::{bounded::bounded, *};

/// A server with TLS whose root belongs to a login, and its authority.
struct Secure {
    authority: Authority,
    server: ZooKeeper,
}

const PASSWORD: &str = "p455-w0rd";

impl Secure {
    async fn start() -> Self {
        let authority = Authority::new().unwrap();
        let issued = authority.server(&["127.0.0.1", "locks.test"]).unwrap();
        let server = lab().tls(issued.certificate(), issued.key()).login("me", PASSWORD);
        Self { authority, server: started(server).await }
    }

    /// One for the tests that change nothing about it.
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Secure> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// The URL of a proxy, for clients with the login.
    fn url_at(&self, addr: SocketAddr, ca: &Path) -> String {
        format!("zookeeper://me:{PASSWORD}@{addr}?tls=verify&ca={}&acl=creator", ca.display())
    }

    /// The URL of the port that speaks TLS alone.
    fn url(&self, login: &str, query: &str) -> String {
        let ca = self.authority.file().display();
        format!("zookeeper://{login}@{}?tls=verify&ca={ca}{query}", self.server.secure_addr())
    }
}

/// Connects in vain, in less than 5 s.
async fn failure(url: &str) -> Error {
    let connect = bounded("a refused connect", Duration::from_secs(5), driver(url));
    let error = connect.await.expect_err(url);
    let text = format!("{error} {error:?}");
    assert!(!text.contains(PASSWORD), "{text}");
    error
}

/// Connects in vain for good: trying again changes nothing.
async fn final_failure(url: &str) -> Error {
    in_time(|| async { Err::<(), _>(failure(url).await) }).await.unwrap_err()
}

/// Connects in vain because of a certificate, and returns the error's text.
async fn refused(url: &str) -> String {
    let error = final_failure(url).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    error.to_string()
}

/// Connects in vain to a server that may serve later, and returns the error's text.
async fn unavailable(url: &str) -> String {
    let error = failure(url).await;
    assert!(is_unavailable(&error), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn locks_are_taken_over_tls_with_a_login() {
    let secure = Secure::shared().await;
    let url = secure.url(&format!("me:{PASSWORD}"), "&acl=creator");
    let (locks, others) = (open(&url).await, open(&url).await);
    let first = locks.lock("a").unwrap().acquire().await.unwrap();
    let second = queue_up(&others, others.lock("a").unwrap(), "a", 1).await;
    let token = first.token();
    first.release().await.unwrap();
    let second = soon("the waiter holds", second).await.unwrap().unwrap();
    assert!(second.token() > token);
    second.release().await.unwrap();
    assert!(!format!("{locks:?} {others:?}").contains(PASSWORD));
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_named() {
    let secure = Secure::shared().await;
    let other = Authority::new().unwrap();
    let (addr, ca) = (secure.server.secure_addr(), other.file().display());
    let error = refused(&format!("zookeeper://me:{PASSWORD}@{addr}?tls=verify&ca={ca}")).await;
    assert!(error.contains("authority that is not trusted"), "{error}");
    let error = refused(&secure.url(&format!("me:{PASSWORD}"), "&server_name=other.test")).await;
    assert!(error.contains("another host name: option server_name"), "{error}");
    let url = secure.url(&format!("me:{PASSWORD}"), "&server_name=locks.test");
    open(&url).await.close().await.unwrap();
}

#[tokio::test]
async fn an_expired_certificate_is_named() {
    let authority = Authority::new().unwrap();
    let issued = authority.expired(&["127.0.0.1"]).unwrap();
    let server = started(lab().tls(issued.certificate(), issued.key())).await;
    let (addr, ca) = (server.secure_addr(), authority.file().display());
    let error = refused(&format!("zookeeper://{addr}?tls=verify&ca={ca}")).await;
    assert!(error.contains("has expired"), "{error}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_or_demanded() {
    let (authority, clients) = (Authority::new().unwrap(), Authority::new().unwrap());
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let server = lab().tls(issued.certificate(), issued.key());
    let server = started(server.client_authority(clients.certificate())).await;
    let (addr, ca) = (server.secure_addr(), authority.file().display());
    let url = format!("zookeeper://{addr}?tls=verify&ca={ca}");
    let error = refused(&url).await;
    assert!(error.contains("options cert and key"), "{error}");
    let (right, wrong) = (clients.client("me").unwrap(), authority.client("me").unwrap());
    let with = |[cert, key]: [&std::path::Path; 2]| {
        format!("{url}&cert={}&key={}", cert.display(), key.display())
    };
    let error = refused(&with(wrong.files())).await;
    assert!(error.contains("options cert and key"), "{error}");
    let locks = open(&with(right.files())).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn plain_text_and_tls_are_not_mistaken_for_each_other() {
    let (secure, plain) = (Secure::shared().await, shared().await);
    let error = unavailable(&format!("zookeeper://{}", secure.server.secure_addr())).await;
    assert!(error.contains("speaks TLS") && error.contains("tls=verify"), "{error}");
    let ca = secure.authority.file().display();
    let error = unavailable(&format!("zookeeper://{}?tls=verify&ca={ca}", plain.addr())).await;
    assert!(error.contains("plain text"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_denied_at_connect() {
    let secure = Secure::shared().await;
    for login in ["me:wr0ng", "you:wr0ng"] {
        let error = final_failure(&secure.url(login, "")).await;
        assert!(matches!(error, Error::Denied { .. }), "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("password") && !text.contains("wr0ng"), "{text}");
    }
}

#[tokio::test]
async fn one_server_whose_certificate_is_trusted_is_enough() {
    let (secure, other) = (Secure::shared().await, Authority::new().unwrap());
    let issued = other.server(&["127.0.0.1"]).unwrap();
    let strange = started(lab().tls(issued.certificate(), issued.key())).await;
    let (trusted, strange) = (secure.server.secure_addr(), strange.secure_addr());
    let login = format!("zookeeper://me:{PASSWORD}@");
    let options = format!("tls=verify&ca={}", secure.authority.file().display());
    open(&format!("{login}{strange},{trusted}?{options}")).await.close().await.unwrap();
    // One that is away may have a certificate that is trusted.
    unavailable(&format!("{login}{strange},127.0.0.1:1?{options}")).await;
}

/// An authority that is replaced for a while is no end: the client goes on trying.
#[tokio::test]
async fn a_certificate_that_is_not_trusted_for_a_while_costs_no_lock() {
    let (secure, other) = (Secure::shared().await, Authority::new().unwrap());
    let authority = &secure.authority;
    let proxy = lock_lab::Proxy::start(secure.server.secure_addr()).await.unwrap();
    let ca = authority.file().with_file_name("trusted.pem");
    std::fs::write(&ca, authority.certificate()).unwrap();
    let url = secure.url_at(proxy.addr(), &ca);
    let locks = open(&url).await;
    let guard = locks.lock("kept").unwrap().acquire().await.unwrap();
    std::fs::write(&ca, other.certificate()).unwrap();
    let before = proxy.stats().connections_total;
    proxy.reset();
    eventually("it is tried twice", || async { proxy.stats().connections_total > before + 1 })
        .await;
    std::fs::write(&ca, authority.certificate()).unwrap();
    locks.lock("b").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_server_that_stops_speaking_tls_is_told_with_the_reason() {
    let secure = Secure::shared().await;
    let proxy = lock_lab::Proxy::start(secure.server.secure_addr()).await.unwrap();
    let addr = proxy.addr();
    let locks = open(&(secure.url_at(addr, secure.authority.file()) + "&ttl=2s")).await;
    proxy.refuse();
    proxy.reset();
    let acquire = locks.lock("refused").unwrap().wait(Duration::from_secs(10)).acquire();
    let error = soon("the session is given up", acquire).await.unwrap_err().to_string();
    assert!(error.contains(&addr.to_string()) && error.contains("refused"), "{error}");
}

/// Another program finds the port of a tunnel among the listening ones, and speaks to it.
#[tokio::test]
async fn a_tunnel_serves_no_other_program() {
    if !lock_lab::in_own_process("secure::a_tunnel_serves_no_other_program") {
        return;
    }
    let secure = Secure::shared().await;
    let locks = open(&secure.url(&format!("me:{PASSWORD}"), "&acl=creator")).await;
    let listening = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let own: Vec<_> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            std::fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned)
        })
        .collect();
    let is_ours = |inode: &str| own.contains(&format!("socket:[{inode}]"));
    let ports: Vec<_> = listening
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(3) == Some(&"0A") && is_ours(words[9]))
        .map(|words| u16::from_str_radix(words[1].rsplit_once(':').unwrap().1, 16).unwrap())
        .collect();
    assert!(!ports.is_empty());
    for port in ports {
        let ask = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf srvr >&3; timeout 3 cat <&3");
        let theirs = tokio::process::Command::new("bash").args(["-c", &ask]).output().await;
        let theirs = String::from_utf8_lossy(&theirs.unwrap().stdout).into_owned();
        assert!(!theirs.contains("Zookeeper"), "{theirs}");
    }
    locks.lock("ours").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_write_to_the_disk_is_told() {
    let careless = started(lab().arg("-Dzookeeper.forceSync=no")).await;
    let (locks, others) = (open(&careless.url()).await, open(&shared().await.url()).await);
    let told = |locks: &Locks, what| {
        locks.guarantees().cautions.iter().any(|caution| caution.contains(what))
    };
    assert!(told(&locks, "forceSync=no") && told(&locks, "single server"), "{locks:?}");
    assert!(!told(&others, "forceSync=no") && told(&others, "single server"));
    assert!(told(&others, "default TTL is 10s"), "{:?}", others.guarantees().cautions);
}
