//! Encrypted connections, certificates of clients, and what is said when they fail.

use std::{path::Path, time::Duration};

use lock_core::{Error, StoreUrl};
use lock_etcd::{EtcdConfig, EtcdLock};
use lock_lab::{Authority, Etcd, Proxy};

use crate::support::{bounded::bounded, *};

const HOST: &str = "127.0.0.1";

fn path(file: &Path) -> String {
    file.display().to_string()
}

/// An etcd with a certificate for this host.
async fn etcd_for(authority: &Authority, host: &str) -> Etcd {
    let server = authority.server(&[host]).unwrap();
    let builder = Etcd::builder().in_memory().tls(server.certificate(), server.key());
    builder.start().await.unwrap()
}

/// Returns why a client cannot connect, and checks that it takes less than 5 s.
async fn error(url: &str) -> Error {
    let config = EtcdConfig::from_url(&StoreUrl::parse(url).unwrap()).unwrap();
    let connect = EtcdLock::connect(config);
    bounded("a refused connect", Duration::from_secs(5), connect).await.unwrap_err()
}

/// Same as [`error`], for a certificate that is not accepted: trying again changes nothing.
async fn refusal(url: &str) -> String {
    let error = error(url).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    error.to_string()
}

/// Same as [`error`], for a server that may serve later.
async fn outage(url: &str) -> String {
    let error = error(url).await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    error.to_string()
}

/// One holds, and the other waits and gets the lock.
async fn contend(url: &str) {
    let (one, other) = (locks(url).await, locks(url).await);
    let held = one.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(other.lock("job").unwrap().acquire());
    until_queued(&one, "job", 2).await;
    held.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn locks_work_over_tls_by_address_and_by_name() {
    let authority = Authority::new().unwrap();
    let ca = path(authority.file());
    let etcd = etcd_for(&authority, HOST).await;
    contend(&format!("{}?tls=verify&ca={ca}", etcd.url())).await;
    contend(&format!("etcds://{}?ca={ca}", etcd.addr())).await;
    let said = refusal(&format!("etcds://{}", etcd.addr())).await;
    assert!(said.contains("certificate"), "an authority that the system does not know: {said}");
    let etcd = etcd_for(&authority, "etcd.lab").await;
    contend(&format!("{}?tls=verify&ca={ca}&server_name=etcd.lab", etcd.url())).await;
}

/// Over TLS, a login that may use one prefix has its locks there, and is told where it has none.
#[tokio::test]
async fn a_login_of_one_prefix_has_its_locks_there_and_nowhere_else() {
    let authority = Authority::new().unwrap();
    let server = authority.server(&[HOST]).unwrap();
    let builder = Etcd::builder().in_memory().arg("--bcrypt-cost=4");
    let etcd = builder.tls(server.certificate(), server.key()).start().await.unwrap();
    etcd.demand_logins(&[("me", "s3cret", "team/locks/")]).await.unwrap();
    let ca = path(authority.file());
    let url = |prefix| format!("etcds://me:s3cret@{}?ca={ca}&prefix={prefix}", etcd.addr());
    contend(&url("team/locks/")).await;
    contend(&url("team/locks/deeper/")).await;
    for prefix in ["", "team/", "other/"] {
        let config = EtcdConfig::from_url(&StoreUrl::parse(&url(prefix)).unwrap()).unwrap();
        let error = match EtcdLock::connect(config).await {
            Ok(driver) => {
                let locks = lock_core::Locks::new(driver);
                locks.lock("job").unwrap().try_acquire().await.unwrap_err()
            }
            Err(error) => error,
        };
        assert!(matches!(error, Error::Denied { .. }), "{prefix}: {error:?}");
        let told = error.to_string();
        assert!(told.contains("permission denied") && !told.contains("s3cret"), "{told}");
    }
}

#[tokio::test]
async fn a_server_may_demand_a_certificate_of_its_clients() {
    let authority = Authority::new().unwrap();
    let server = authority.server(&[HOST]).unwrap();
    let builder = Etcd::builder().in_memory().tls(server.certificate(), server.key());
    let etcd = builder.client_authority(authority.certificate()).start().await.unwrap();
    let url = format!("{}?tls=verify&ca={}", etcd.url(), path(authority.file()));
    let said = refusal(&url).await;
    assert!(said.contains("certificate of the client"), "{said}");
    let client = authority.client("anybody").unwrap();
    let [cert, key] = client.files().map(path);
    contend(&format!("{url}&cert={cert}&key={key}")).await;

    let stranger = Authority::new().unwrap().client("stranger").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let [cert, key] = ["pem", "key"].map(|end| dir.path().join(end));
    std::fs::write(&cert, stranger.certificate()).unwrap();
    std::fs::write(&key, stranger.key()).unwrap();
    let said = refusal(&format!("{url}&cert={}&key={}", path(&cert), path(&key))).await;
    assert!(said.contains("certificate of the client"), "{said}");
}

#[tokio::test]
async fn an_untrusted_an_expired_and_another_hosts_certificate_are_refused_with_the_reason() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let etcd = etcd_for(&authority, HOST).await;
    let said = refusal(&format!("{}?tls=verify&ca={}", etcd.url(), path(other.file()))).await;
    assert!(said.contains("not trusted") && said.contains("UnknownIssuer"), "{said}");
    // The system's authorities do not know it either.
    let said = refusal(&format!("{}?tls=verify", etcd.url())).await;
    assert!(said.contains("not trusted"), "{said}");

    let ca = path(authority.file());
    let etcd = etcd_for(&authority, "elsewhere.lab").await;
    let said = refusal(&format!("{}?tls=verify&ca={ca}", etcd.url())).await;
    assert!(said.contains("another host") && said.contains("elsewhere.lab"), "{said}");

    let server = authority.expired(&[HOST]).unwrap();
    let builder = Etcd::builder().in_memory().tls(server.certificate(), server.key());
    let etcd = builder.start().await.unwrap();
    let said = refusal(&format!("{}?tls=verify&ca={ca}", etcd.url())).await;
    assert!(said.contains("has expired"), "{said}");
}

#[tokio::test]
async fn one_member_whose_certificate_is_trusted_is_enough() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let (trusted, strange) = (etcd_for(&authority, HOST).await, etcd_for(&other, HOST).await);
    let options = format!("tls=verify&ca={}", path(authority.file()));
    let both = format!("etcd://{},{}?{options}", strange.addr(), trusted.addr());
    locks(&both).await.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    // One that is away may have a certificate that is trusted.
    outage(&format!("etcd://{},127.0.0.1:1?{options}", strange.addr())).await;
}

#[tokio::test]
async fn tls_to_a_plain_port_and_the_reverse_are_told_apart_from_an_outage() {
    let authority = Authority::new().unwrap();
    let plain = etcd().await;
    let said = outage(&format!("{}?tls=verify&ca={}", plain.url(), path(authority.file()))).await;
    assert!(said.contains("does not speak TLS"), "{said}");
    let encrypted = etcd_for(&authority, HOST).await;
    let said = outage(&encrypted.url()).await;
    assert!(said.contains("expects TLS"), "{said}");
}

#[tokio::test]
async fn files_that_are_no_certificates_are_refused_before_anything_is_sent() {
    let authority = Authority::new().unwrap();
    let etcd = etcd_for(&authority, HOST).await;
    let dir = tempfile::tempdir().unwrap();
    let junk = dir.path().join("junk.pem");
    std::fs::write(&junk, "no certificate").unwrap();
    for (option, file) in [("ca", path(&junk)), ("ca", "/no/such/file.pem".to_owned())] {
        let url = format!("{}?tls=verify&{option}={file}", etcd.url());
        let config = EtcdConfig::from_url(&StoreUrl::parse(&url).unwrap());
        let error = match config {
            Ok(config) => EtcdLock::connect(config).await.unwrap_err(),
            Err(error) => error,
        };
        let said = error.to_string();
        assert!(matches!(error, Error::InvalidOption { .. }) && said.contains(&file), "{said}");
    }
}

#[tokio::test]
async fn replaced_certificates_are_used_from_the_next_connection_on_and_no_lock_is_lost() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let etcd = etcd_for(&authority, HOST).await;
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, authority.certificate()).unwrap();
    let url = format!("{}?tls=verify&ca={}&ttl=20s", etcd.url_via(&proxy), path(&ca));
    let ours = locks(&url).await;
    let held = ours.lock("held").unwrap().acquire().await.unwrap();

    std::fs::write(&ca, other.certificate()).unwrap();
    proxy.reset();
    let refused = async || {
        let error = ours.inspect("held").await.err()?;
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        Some(error.to_string())
    };
    let is_read = async || refused().await.is_some_and(|said| said.contains("not trusted"));
    until("the new file is read", is_read).await;
    std::fs::write(&ca, authority.certificate()).unwrap();
    until("it is trusted again", async || refused().await.is_none()).await;
    ours.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    held.renew().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_dead_member_is_left_for_the_next_one_over_tls() {
    let authority = Authority::new().unwrap();
    let etcd = etcd_for(&authority, HOST).await;
    let proxies =
        [Proxy::start(etcd.addr()).await.unwrap(), Proxy::start(etcd.addr()).await.unwrap()];
    let hosts = format!("{},{}", proxies[0].addr(), proxies[1].addr());
    let ca = path(authority.file());
    let ours = locks(&format!("etcd://{hosts}?tls=verify&ca={ca}&ttl=20s")).await;
    let held = ours.lock("held").unwrap().acquire().await.unwrap();
    for (down, up) in [(0, 1), (1, 0), (0, 1)] {
        proxies[up].heal();
        proxies[down].refuse();
        let job = ours.lock("job").unwrap();
        let pair = async { job.acquire().await.unwrap().release().await.unwrap() };
        bounded("the next member", Duration::from_secs(5), pair).await;
    }
    assert!(held.is_valid());
}
