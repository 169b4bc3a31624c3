//! Chooses the driver for a URL.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Connect, DistributedLock, Effect, Error, Opener, Opening, Result, StoreUrl, duration::shown,
};

#[cfg(feature = "_server")]
use crate::other_server::explain;
use crate::{STORES, Store};

/// Longest time for connecting: an unreachable store must be an error soon, not a hang.
const CONNECT_LIMIT: Duration = Duration::from_millis(4500);

/// Connects to the store of a URL. Await the result, or add requirements first.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> distlock::Result<()> {
/// use distlock::Requirement;
///
/// let locks = distlock::connect("memory:").require(Requirement::StrictFencing).await?;
/// println!("{:?}", locks.guarantees());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// When awaited: [`Error::InvalidUrl`] for an unknown scheme (it names the known ones) or a missing
/// feature, [`Error::InvalidOption`], [`Error::Unavailable`] within 5 s, [`Error::Denied`] for a
/// wrong password, [`Error::Unmet`].
#[track_caller]
pub fn connect(url: impl AsRef<str>) -> Connect {
    Connect::new(url.as_ref(), Opener { open, default_port: Store::port_of, explain })
}

fn open(url: StoreUrl) -> Opening {
    Box::pin(async move {
        let store = known(&url)?;
        match tokio::time::timeout(CONNECT_LIMIT, driver(store, &url)).await {
            Ok(driver) => driver,
            Err(_) => Err(Error::Unavailable {
                store,
                op: "connect",
                effect: Effect::None,
                source: format!("no answer from {url} within {}", shown(CONNECT_LIMIT)).into(),
            }),
        }
    })
}

/// Without a store that has servers there is nothing to explain.
#[cfg(not(feature = "_server"))]
fn explain(_: StoreUrl, _: Duration) -> lock_core::BoxFuture<'static, Option<String>> {
    Box::pin(async { None })
}

/// The scheme of a URL whose driver is compiled in.
fn known(url: &StoreUrl) -> Result<&'static str> {
    let Some(store) = Store::of_scheme(url.scheme()) else {
        let schemes: Vec<_> = STORES.iter().flat_map(Store::schemes).collect();
        let (scheme, schemes) = (url.scheme(), schemes.join(", "));
        let socket = match scheme.contains("unix") || scheme.contains("socket") {
            true => "; a socket of this machine cannot be named, its server on 127.0.0.1 can",
            false => "",
        };
        return Err(url.error(format!("unknown scheme {scheme:?}; known are {schemes}{socket}")));
    };
    let (scheme, feature) = (store.scheme, store.feature);
    match store.compiled_in {
        true if lacks_slashes(store, url) => Err(url.error(format!(
            "a server's URL has two slashes before the host: write {}",
            store.url
        ))),
        // The usual cause is a variable that is not set, which must not lead to another store.
        true if store.port.is_some() && url.has_authority() && !url.has_host() => {
            Err(url.error(format!("the host is empty; the server on this machine is {scheme}:")))
        }
        true => Ok(scheme),
        false => Err(url.error(format!(
            "{scheme} is not compiled in; build with feature {feature:?} (cargo .. --features {feature})"
        ))),
    }
}

/// Whether the text in place of a path may be meant as a host. Such a URL names a path on this
/// machine's server.
fn lacks_slashes(store: &Store, url: &StoreUrl) -> bool {
    let path = url.path();
    let is_path = match store.scheme {
        "redis" => path.parse::<u16>().is_ok(),
        "etcd" => false,
        _ => path.starts_with('/'),
    };
    store.port.is_some() && !url.has_authority() && !path.is_empty() && !is_path
}

/// The type that opens each driver.
#[allow(unused_macros, reason = "without a store there is nothing to open")]
macro_rules! open {
    ($url:expr, $driver:ident::{$Config:ident, $Lock:ident}) => {
        Ok(Arc::new($driver::$Lock::connect($driver::$Config::from_url($url)?).await?))
    };
}

async fn driver(store: &str, url: &StoreUrl) -> Result<Arc<dyn DistributedLock>> {
    match store {
        #[cfg(feature = "memory")]
        "memory" => open!(url, lock_memory::{MemoryConfig, MemoryLock}),
        #[cfg(feature = "etcd")]
        "etcd" => open!(url, lock_etcd::{EtcdConfig, EtcdLock}),
        #[cfg(feature = "redis")]
        "redis" if url.scheme() == "redlock" => open!(url, lock_redis::{RedlockConfig, Redlock}),
        #[cfg(feature = "redis")]
        "redis" => open!(url, lock_redis::{RedisConfig, RedisLock}),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => open!(url, lock_zk::{ZkConfig, ZkLock}),
        #[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
        "sqlite" | "mysql" | "postgres" => open!(url, lock_sql::{SqlConfig, SqlLock}),
        store => Err(url.error(format!("no driver for {store}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way to ask for TLS, and the word in the refusal that says what asked.
    #[cfg(all(feature = "etcd", feature = "redis", feature = "zookeeper", not(feature = "tls")))]
    #[tokio::test]
    async fn a_build_without_tls_refuses_it_by_name_before_it_opens_a_socket() {
        use lock_core::Tls;
        use lock_etcd::{EtcdConfig, EtcdLock, client::ConnectOptions};
        use lock_redis::{Address, RedisConfig, RedisLock, Redlock, RedlockConfig};
        use lock_zk::{ZkConfig, ZkLock};

        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let (host, port) =
            (server.local_addr().unwrap().to_string(), server.local_addr().unwrap().port());
        let mut refusals = Vec::new();
        for (before, behind, named) in [
            ("etcds://", "", "etcds://"),
            ("etcd://", "?tls=verify", "tls"),
            ("rediss://", "", "rediss://"),
            ("valkeys://", "", "valkeys://"),
            ("redis://", "?tls=verify", "tls"),
            ("redis+sentinel://", "/main?tls=verify", "tls"),
            ("redis+cluster://", "?tls=verify", "tls"),
            ("redlock://h,i,", "?tls=verify", "tls"),
            ("zookeeper://", "?tls=verify&tick=2s", "tls"),
        ] {
            let refusal = connect(format!("{before}{host}{behind}")).await.err();
            refusals.push((refusal, named));
        }
        // From a file, a configuration is as from code.
        let tls = Tls::verify;
        let etcd = EtcdLock::connect(EtcdConfig::new([&host]).tls(tls())).await;
        refusals.push((etcd.err(), "tls"));
        let endpoint = format!("https://{host}");
        let etcd = EtcdConfig::from_options([&endpoint], ConnectOptions::new());
        refusals.push((EtcdLock::connect(etcd).await.err(), "https://"));
        let redis = RedisConfig::new("127.0.0.1", port).tls(tls());
        refusals.push((RedisLock::connect(redis).await.err(), "tls"));
        let nodes = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|node| Address::new(node, port));
        refusals.push((Redlock::connect(RedlockConfig::new(nodes).tls(tls())).await.err(), "tls"));
        refusals.push((ZkLock::connect(ZkConfig::new([&host]).tls(tls())).await.err(), "tls"));

        for (number, (refusal, named)) in refusals.into_iter().enumerate() {
            let refusal = refusal.unwrap_or_else(|| panic!("{number} connects")).to_string();
            assert!(refusal.contains(named), "{number}: {refusal}");
            assert!(refusal.contains("--features tls"), "{number}: {refusal}");
        }
        let asked = server.accept().map(drop).unwrap_err();
        assert_eq!(asked.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for (url, told) in [
            ("redis:///0", "the host is empty"),
            ("etcd://", "the host is empty"),
            ("postgres://?ttl=5s", "the host is empty"),
            ("redis+unix:/run/redis.sock", "127.0.0.1"),
            ("unix:///run/redis.sock", "127.0.0.1"),
        ] {
            let refused = known(&StoreUrl::parse(url).unwrap()).unwrap_err().to_string();
            // A driver that is not there has nothing to say about the host.
            assert!(refused.contains(told) || refused.contains("not compiled in"), "{refused}");
        }
    }

    #[test]
    fn a_host_needs_its_slashes() {
        let lacks = |url: &str| {
            let url = StoreUrl::parse(url).unwrap();
            lacks_slashes(Store::of_scheme(url.scheme()).unwrap(), &url)
        };
        for url in ["postgres:dbhost", "mysql:dbhost/shop", "zookeeper:zk1", "redis:h", "etcd:h"] {
            assert!(lacks(url), "{url}");
        }
        for url in ["postgres:", "postgres:/shop", "mysql://dbhost/shop", "redis:3", "sqlite:a.db"]
        {
            assert!(!lacks(url), "{url}");
        }
    }
}
