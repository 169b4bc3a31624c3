//! No password and no key is shown: not by `Debug`, not in errors, not in traces of any level.

use std::{
    io,
    sync::{Arc, Mutex},
};

use lock_core::{Locks, Pem, Secret, StoreUrl, Tls};
use lock_etcd::{EtcdConfig, EtcdLock};
use lock_lab::{Authority, Etcd};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::*;

/// All that was traced, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

const RIGHT: &str = "corr3ct-horse";
const WRONG: &str = "wr0ng-battery";
const NEW: &str = "n3w-staple";

async fn all_that_can_be_seen(log: &Log) -> String {
    let authority = Authority::new().unwrap();
    let server = authority.server(&["127.0.0.1"]).unwrap();
    let builder = Etcd::builder().in_memory().tls(server.certificate(), server.key());
    let etcd = builder.client_authority(authority.certificate()).start().await.unwrap();
    etcd.demand_logins(&[("me", RIGHT, "locks/")]).await.unwrap();
    let client = authority.client("anybody").unwrap();
    let tls = Tls::verify()
        .ca(Pem::Text(authority.certificate()))
        .cert(Pem::Text(client.certificate().to_owned()))
        .key(Pem::Text(client.key().to_owned()));
    let config = |secret: Secret| {
        let config = EtcdConfig::new([etcd.addr().to_string()]).login("me", secret);
        config.tls(tls.clone()).prefix("locks/")
    };
    let mut seen = format!("{:?}", config(Secret::text(RIGHT)));
    let refused = EtcdLock::connect(config(Secret::text(WRONG))).await.unwrap_err();
    seen += &format!("{refused} {refused:?}");
    let url = StoreUrl::parse(&format!("etcd://me:{WRONG}@h?tls=verify&nonsense=1")).unwrap();
    seen += &format!("{url} {:?} {}", url, EtcdConfig::from_url(&url).unwrap_err());

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, RIGHT).unwrap();
    let driver = EtcdLock::connect(config(Secret::file(file.path()))).await.unwrap();
    seen += &format!("{driver:?}");
    let locks = Locks::new(driver);
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    etcd.set_password("me", NEW).await.unwrap();
    let refused = locks.lock("other").unwrap().acquire().await.unwrap_err();
    seen += &format!("{refused} {refused:?} {locks:?} {guard:?}");
    std::fs::write(&file, NEW).unwrap();
    soon(async { while locks.lock("other").unwrap().try_acquire().await.is_err() {} }).await;
    etcd.kill();
    let gone = locks.inspect("job").await.unwrap_err();
    seen += &format!("{gone} {gone:?}");
    let key = client.key().lines().nth(1).unwrap();
    assert!(!seen.contains(key), "the client's key is shown");
    let traced = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!traced.contains(key), "the client's key is traced");
    seen + &traced
}

#[test]
fn no_secret_is_shown() {
    // The subscriber is that of a process.
    if !lock_lab::in_own_process("hidden::no_secret_is_shown") {
        return;
    }
    let log = Log::default();
    let traced = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    traced.with_ansi(false).with_writer(log.clone()).init();
    // One thread, and the whole process: the client's own tasks are seen as well.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen = runtime.block_on(all_that_can_be_seen(&log));
    assert!(seen.contains("granted") && seen.contains("authentication failed"), "{seen}");
    for secret in [RIGHT, WRONG, NEW] {
        if let Some(line) = seen.lines().find(|line| line.contains(secret)) {
            panic!("{secret} is shown: {line}");
        }
    }
}
