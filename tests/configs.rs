//! The same lines configure and connect each driver, so that their forms cannot drift apart.

use std::time::Duration;

use distlock::{Error, Locks, StoreUrl};

/// Checks the parts that every driver has: a URL, the same fields, setters of the same names, a
/// text that hides the password, and a connection that checks the TTL before it contacts the store.
macro_rules! driver {
    ($test:ident, $feature:literal, $driver:ident::{$Config:ident, $Lock:ident}, $url:literal) => {
        #[cfg(feature = $feature)]
        #[tokio::test]
        async fn $test() {
            use distlock::$driver::{$Config, $Lock};

            let url = StoreUrl::parse(concat!($url, "?ttl=7s")).unwrap();
            let config: $Config = $Config::from_url(&url).unwrap();
            let ttl: Option<Duration> = config.ttl;
            assert_eq!(ttl, Some(Duration::from_secs(7)));
            assert_eq!($Config::default().ttl, None);
            assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
            let unknown = StoreUrl::parse(concat!($url, "?holder=me")).unwrap();
            let error = $Config::from_url(&unknown).unwrap_err();
            assert!(matches!(&error, Error::InvalidOption { .. }), "{error}");
            // A fraction of a second too short for every store.
            let config = config.ttl(Duration::from_millis(1) / 2);
            let error: Error = $Lock::connect(config.clone()).await.map(Locks::new).unwrap_err();
            refused(&error);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    };
}

/// Some drivers contact the server before they check the TTL. So the error is about the TTL or the
/// missing server.
fn refused(error: &Error) {
    let refused = matches!(error, Error::InvalidOption { option, .. } if option == "ttl")
        || matches!(error, Error::Unavailable { .. });
    assert!(refused, "{error:?}");
}

driver!(memory, "memory", memory::{MemoryConfig, MemoryLock}, "memory:configs");
driver!(etcd, "etcd", etcd::{EtcdConfig, EtcdLock}, "etcd://me:s3cret@127.0.0.1:1");
driver!(redis, "redis", redis::{RedisConfig, RedisLock}, "redis://me:s3cret@127.0.0.1:1");
driver!(sentinel, "redis", redis::{RedisConfig, RedisLock}, "redis+sentinel://me:s3cret@127.0.0.1:1/s");
driver!(cluster, "redis", redis::{RedisConfig, RedisLock}, "redis+cluster://me:s3cret@127.0.0.1:1");
driver!(
    redlock,
    "redis",
    redis::{RedlockConfig, Redlock},
    "redlock://me:s3cret@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
);
driver!(zookeeper, "zookeeper", zookeeper::{ZkConfig, ZkLock}, "zookeeper://me:s3cret@127.0.0.1:1");
driver!(sqlite, "sqlite", sql::{SqlConfig, SqlLock}, "sqlite:configs-of-no-file.db");
driver!(postgres, "postgres", sql::{SqlConfig, SqlLock}, "postgres://me:s3cret@127.0.0.1:1/db");
driver!(mysql, "mysql", sql::{SqlConfig, SqlLock}, "mysql://me:s3cret@127.0.0.1:1/db");

/// The fields of drivers whose store is shared with foreign clients.
macro_rules! shared_store {
    ($test:ident, $feature:literal, $driver:ident::$Config:ident) => {
        #[cfg(feature = $feature)]
        #[test]
        fn $test() {
            use distlock::{Layout, Secret, Timeouts, Tls, $driver::$Config};

            fn prefix(layout: Layout) -> &'static str {
                match layout {
                    Layout::Native => "/native",
                    _ => "/escaped",
                }
            }
            let config = $Config::default().login("me", "s3cret").layout(Layout::Native);
            let layout: Layout = config.layout;
            let config = config.prefix(prefix(layout));
            assert_eq!(config.user, Some("me".into()));
            assert_eq!(config.password, Some("s3cret".into()));
            assert_eq!(config.prefix, "/native");
            assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
            // The words in a URL are the same.
            let url = StoreUrl::parse(concat!($feature, "://h?layout=native")).unwrap();
            assert_eq!($Config::from_url(&url).unwrap().layout, layout);
            let url = concat!(
                $feature,
                "://me@h?tls=verify&ca=/ca.pem&cert=/cert.pem&key=/key.pem&server_name=locks",
                "&password_file=/password&connect_timeout=2s&request_timeout=700ms"
            );
            let config = $Config::from_url(&StoreUrl::parse(url).unwrap()).unwrap();
            let tls = Tls::verify().ca("/ca.pem").cert("/cert.pem").key("/key.pem");
            assert_eq!(config.tls, tls.server_name("locks"));
            assert_eq!(config.password, Some(Secret::file("/password")));
            let [connect, request] = [2000, 700].map(Duration::from_millis);
            assert_eq!(config.timeouts, Timeouts::default().connect(connect).request(request));
        }
    };
}

shared_store!(names_on_etcd, "etcd", etcd::EtcdConfig);
shared_store!(names_on_redis, "redis", redis::RedisConfig);
shared_store!(names_on_zookeeper, "zookeeper", zookeeper::ZkConfig);

/// The URLs of `docs/stores/README.md`, as they stand there.
#[cfg(all(feature = "etcd", feature = "postgres", feature = "redis", feature = "zookeeper"))]
#[test]
fn the_urls_on_the_page_are_accepted() {
    use distlock::{
        etcd::EtcdConfig,
        redis::{RedisConfig, RedlockConfig},
        sql::SqlConfig,
        zookeeper::ZkConfig,
    };

    let page = include_str!("../docs/stores/README.md");
    let (_, urls) = page.split_once("Some URLs as they are used:\n\n```text\n").expect("a block");
    let (urls, _) = urls.split_once("```").expect("its end");
    assert_eq!(urls.lines().count(), 6);
    for line in urls.lines() {
        let url = StoreUrl::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let accepted = match url.scheme() {
            "etcds" => EtcdConfig::from_url(&url).map(drop),
            "postgres" => SqlConfig::from_url(&url).map(drop),
            "redlock" => RedlockConfig::from_url(&url).map(drop),
            "redis+cluster" | "redis+sentinel" => RedisConfig::from_url(&url).map(drop),
            "zookeeper" => ZkConfig::from_url(&url).map(drop),
            other => panic!("{other} is new on the page"),
        };
        accepted.unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

/// A configuration from a file equals one from a URL.
#[cfg(feature = "serde")]
mod files {
    use super::*;

    macro_rules! file {
        ($test:ident, $feature:literal, $driver:ident::$Config:ident, $url:expr, $file:expr) => {
            #[cfg(feature = $feature)]
            #[test]
            fn $test() {
                use distlock::$driver::$Config;

                let url = StoreUrl::parse($url).unwrap();
                let by_url = format!("{:?}", $Config::from_url(&url).unwrap());
                let read = |text: &str| serde_json::from_str::<$Config>(text);
                assert_eq!(format!("{:?}", read($file).unwrap()), by_url);
                assert!(read(r#"{"holder": "me"}"#).is_err(), "an unknown field");
                let error = read(r#"{"ttl": "soon"}"#).unwrap_err().to_string();
                assert!(error.contains("soon") && error.contains("15s"), "{error}");
            }
        };
    }

    file!(memory, "memory", memory::MemoryConfig, "memory:a?ttl=7s", r#"{"name":"a","ttl":"7s"}"#);
    file!(
        etcd,
        "etcd",
        etcd::EtcdConfig,
        "etcd://me:pw@h,i:1?ttl=7s&prefix=p/&layout=native",
        r#"{"hosts":["h:2379","i:1"],"user":"me","password":"pw","ttl":"7s","prefix":"p/","layout":"native"}"#
    );
    file!(
        redis,
        "redis",
        redis::RedisConfig,
        "redis://me:pw@h:7000/2?ttl=7s&mode=simple",
        r#"{"target":{"server":"h:7000"},"database":2,"user":"me","password":"pw","ttl":"7s","mode":"simple"}"#
    );
    file!(
        sentinel,
        "redis",
        redis::RedisConfig,
        "redis+sentinel://me@s1,s2:26380/main/3?wait_replicas=2&sentinel_user_env=WATCH\
         &sentinel_password_file=/watch&password_env=PASSWORD&tls=verify&ca=/ca&server_name=locks",
        r#"{"target":{"sentinel":{"sentinels":["s1:26379","s2:26380"],"service":"main"}},"database":3,
            "user":"me","password":{"env":"PASSWORD"},"wait_replicas":2,
            "sentinel_user":{"env":"WATCH"},"sentinel_password":{"file":"/watch"},
            "tls":{"mode":"verify","ca":"/ca","server_name":"locks"}}"#
    );
    file!(
        cluster,
        "redis",
        redis::RedisConfig,
        "redis+cluster://me@n1,n2:7001?wait_replicas=1&prefix=p:&password_file=/secret\
         &connect_timeout=2s&request_timeout=700ms&tls=verify&cert=/cert&key=/key",
        r#"{"target":{"cluster":{"nodes":["n1","n2:7001"]}},"user":"me","password":{"file":"/secret"},
            "wait_replicas":1,"prefix":"p:","timeouts":{"connect":"2s","request":"700ms"},
            "tls":{"mode":"verify","cert":"/cert","key":"/key"}}"#
    );
    file!(
        redlock,
        "redis",
        redis::RedlockConfig,
        "redlock://me@n1,n2:7001,n3/2?ttl=7s&max_ttl=20s&prefix=p:&layout=native&password_file=/secret\
         &connect_timeout=2s&request_timeout=700ms&tls=verify&ca=/ca",
        r#"{"nodes":["n1","n2:7001","n3"],"user":"me","password":{"file":"/secret"},"database":2,
            "ttl":"7s","max_ttl":"20s","prefix":"p:","layout":"native",
            "timeouts":{"connect":"2s","request":"700ms"},"tls":{"mode":"verify","ca":"/ca"}}"#
    );
    file!(
        zookeeper,
        "zookeeper",
        zookeeper::ZkConfig,
        "zookeeper://me:pw@h/app?tick=1s&acl=creator",
        r#"{"hosts":["h:2181"],"chroot":"/app","user":"me","password":"pw","tick":"1s","access":"creator"}"#
    );
    file!(
        sqlite,
        "sqlite",
        sql::SqlConfig,
        "sqlite:a.db?ttl=7s",
        r#"{"target":{"file":{"path":"a.db"}},"ttl":"7s"}"#
    );
    file!(
        postgres,
        "postgres",
        sql::SqlConfig,
        "postgres://me:pw@h/db?tls=verify&ca=ca.pem",
        r#"{"target":{"postgres":{"hosts":["h:5432"],"user":"me","password":"pw","database":"db","tls":{"mode":"verify","ca":"ca.pem"}}}}"#
    );
    file!(
        mysql,
        "mysql",
        sql::SqlConfig,
        "mysql://h/db",
        r#"{"target":{"mysql":{"hosts":["h:3306"],"database":"db"}}}"#
    );

    /// Text in a file for the options of a connection, which every driver with a server has. Not
    /// every driver's text shows the password.
    macro_rules! secured {
        ($test:ident, $feature:literal, $driver:ident::$Config:ident, $url:literal, $file:literal) => {
            #[cfg(feature = $feature)]
            #[test]
            fn $test() {
                use distlock::{Secret, User, $driver::$Config};

                const URL: &str = concat!(
                    $url,
                    "?ttl=7s&user_file=/user&password_file=/secret&connect_timeout=2s",
                    "&request_timeout=700ms&tls=verify&ca=/ca&cert=/cert&key=/key&server_name=h"
                );
                const FILE: &str = concat!(
                    $file,
                    r#","user":{"file":"/user"},"password":{"file":"/secret"},
                    "timeouts":{"connect":"2s","request":"700ms"},
                    "tls":{"mode":"verify","ca":"/ca","cert":"/cert","key":"/key","server_name":"h"}"#,
                    "}"
                );
                let by_url = $Config::from_url(&StoreUrl::parse(URL).unwrap()).unwrap();
                let read: $Config = serde_json::from_str(FILE).unwrap();
                assert_eq!(format!("{read:?}"), format!("{by_url:?}"));
                assert_eq!((&read.password, &read.tls), (&by_url.password, &by_url.tls));
                assert_eq!((&read.user, &by_url.user), (&by_url.user, &Some(User::file("/user"))));
                assert_eq!(read.password, Some(Secret::file("/secret")));
            }
        };
    }

    secured!(
        secured_etcd,
        "etcd",
        etcd::EtcdConfig,
        "etcd://h",
        r#"{"ttl":"7s","hosts":["h:2379"]"#
    );
    secured!(
        secured_redis,
        "redis",
        redis::RedisConfig,
        "redis://h",
        r#"{"ttl":"7s","target":{"server":"h"}"#
    );
    secured!(
        secured_zookeeper,
        "zookeeper",
        zookeeper::ZkConfig,
        "zookeeper://h",
        r#"{"ttl":"7s","hosts":["h:2181"]"#
    );

    /// The same in the part of a database's server.
    macro_rules! secured_database {
        ($test:ident, $feature:literal, $url:literal, $host:literal) => {
            file!(
                $test,
                $feature,
                sql::SqlConfig,
                concat!(
                    $url,
                    "?ttl=7s&failover=managed&user_env=USER&password_env=PASSWORD&connect_timeout=2s",
                    "&request_timeout=700ms&tls=verify&ca=/ca&cert=/cert&key=/key"
                ),
                concat!(
                    r#"{"ttl":"7s","target":{""#,
                    $feature,
                    r#"":{"hosts":["h:"#,
                    $host,
                    r#"","i:1"],"user":{"env":"USER"},"database":"db","password":{"env":"PASSWORD"},
                    "failover":"managed","timeouts":{"connect":"2s","request":"700ms"},
                    "tls":{"mode":"verify","ca":"/ca","cert":"/cert","key":"/key"}}}}"#
                )
            );
        };
    }

    secured_database!(secured_postgres, "postgres", "postgres://h,i:1/db", "5432");
    secured_database!(secured_mysql, "mysql", "mysql://h,i:1/db", "3306");

    /// What a file must not show, and what is refused there as in a URL.
    #[cfg(feature = "redis")]
    #[test]
    fn a_wrong_configuration_is_refused_without_its_secret() {
        use distlock::redis::{RedisConfig, RedlockConfig};

        let secret = r#"{"password":{"fiel":"s3cret"}}"#;
        let error = serde_json::from_str::<RedisConfig>(secret).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
        for wrong in [
            r#"{"target":{"sentinel":{"sentinels":["a"]}}}"#,
            r#"{"target":{"cluster":{"nodes":["a:no"]}}}"#,
            r#"{"wait_replicas":-1}"#,
            r#"{"tls":{"mode":"perhaps"}}"#,
            r#"{"timeouts":{"connect":"soon"}}"#,
        ] {
            assert!(serde_json::from_str::<RedisConfig>(wrong).is_err(), "{wrong}");
        }
        for wrong in [r#"{"wait_replicas":1}"#, r#"{"nodes":["a"],"mode":"simple"}"#] {
            assert!(serde_json::from_str::<RedlockConfig>(wrong).is_err(), "{wrong}");
        }
    }
}
