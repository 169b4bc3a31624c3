use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[test]
fn the_short_forms() {
    let url = StoreUrl::parse("memory:").unwrap();
    assert_eq!((url.scheme(), url.path()), ("memory", ""));
    assert_eq!(StoreUrl::parse("memory:demo").unwrap().path(), "demo");
    assert_eq!(StoreUrl::parse("etcd://").unwrap().hosts(2379), ["127.0.0.1:2379"]);
    assert_eq!(StoreUrl::parse("etcd://[::1]").unwrap().hosts(2379), ["[::1]:2379"]);
    assert_eq!(StoreUrl::parse("etcd://[::1]:1").unwrap().hosts(2379), ["[::1]:1"]);
}

#[test]
fn a_bad_url_is_refused_with_the_reason() {
    for (url, expected) in [
        ("", "SCHEME"),
        ("127.0.0.1:2379", "SCHEME"),
        ("etcd://host:99999", "99999"),
        ("etcd://host:port", "port"),
        ("etcd://:2379", "HOST"),
        ("etcd://h?ttl", "no value"),
        ("etcd://h?a=1&a=2", "twice"),
        ("etcd://h/%FF", "UTF-8"),
        ("etcd://h:+5", "h:+5"),
        ("etcd://[::1", "[::1"),
        ("etcd://fe80::1", "fe80::1"),
        ("redis://me:12/x@h", "escaped"),
        ("redis://h?password=x", "before the host"),
        ("sqlite:/a.db\r", "line end"),
        ("sqlite:/a.db ", "blank at the end"),
        ("sqlite:/a\u{1b}.db", "control character"),
        ("etcd://a,,b", "a host is empty"),
        ("etcd://a,", "a host is empty"),
        ("redis://me@/0", "a host is empty"),
        ("postgres://%2Frun%2Fpostgresql/app", "socket"),
        ("postgres://me@%2Frun%2Fpostgresql:5432/app", "socket"),
    ] {
        let error = StoreUrl::parse(url).unwrap_err().to_string();
        assert!(error.contains(expected), "{url}: {error}");
    }
}

#[test]
fn options_are_typed_and_unknown_ones_refused() {
    let url = StoreUrl::parse("etcd://h?ttl=1500ms&n=7&mode=b").unwrap();
    let mut options = url.options();
    assert_eq!(options.duration("ttl").unwrap(), Some(Duration::from_millis(1500)));
    assert_eq!(options.number("n", 1..=9).unwrap(), Some(7));
    assert!(options.number("n", 1..=6).unwrap_err().to_string().contains("1 to 6"));
    assert_eq!(options.choice("mode", &[("a", 1), ("b", 2)]).unwrap(), Some(2));
    options.finish().unwrap();
    let long = StoreUrl::parse("etcd://h?ttl=1m30s").unwrap();
    assert_eq!(long.options().duration("ttl").unwrap(), Some(Duration::from_secs(90)));
    let mut options = url.options();
    options.text("n");
    let error = options.finish().unwrap_err().to_string();
    assert!(error.contains("mode") && error.contains("knows: n"), "{error}");
}

#[test]
fn a_password_among_the_options_is_not_shown() {
    for url in [
        "redis://h?password=QXZ",
        "sqlite:x?ttl=5s&token=QXZ@x&a=b",
        "etcd://u:p@h?pass=QXZ",
        "redis://h?Password=QXZ",
        "redis://h?ttl=5s&PWD=QXZ",
        "mysql://h/d?passwd=QXZ",
        "zookeeper://h?auth=QXZ",
        "redis+sentinel://h/s?sentinel_password=QXZ",
        "redis://h?ttl=5s&requirepass=QXZ",
    ] {
        assert!(!without_password(url).contains("QXZ"), "{url}");
        let error = StoreUrl::parse(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("QXZ"), "{error}");
    }
}

#[test]
fn a_login_without_its_scheme_is_not_shown() {
    for (url, shown) in [
        ("u:QXZ@h", "u:***@h"),
        ("//u:QXZ@h", "//u:***@h"),
        ("QXZ@h", "***@h"),
        ("u:QXZ:QXZ@QXZ@h", "u:***@h"),
        ("u:QXZ?token=QXZ@h", "u:***@h"),
        ("redis://u@h", "redis://u@h"),
    ] {
        assert_eq!(without_password(url), shown);
    }
}

proptest! {
    #[test]
    fn never_panics_and_never_shows_the_password(
        url in ".{0,60}",
        // Letters that are in no message of distlock.
        secret in "[QXZ]{4}[/?#@:a-z%]{0,3}[QXZ]{5}",
        rest in "(/[0-9]?)?([?]ttl=5s)?",
        scheme in "(redis://|//|)",
    ) {
        let _ = StoreUrl::parse(&url);
        let url = format!("{scheme}user:{secret}@host{rest}");
        let shown = match StoreUrl::parse(&url) {
            Ok(url) => format!("{url} {url:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        let (start, end) = (&secret[..4], &secret[secret.len() - 5..]);
        prop_assert!(!shown.contains(start) && !shown.contains(end), "{} in {}", secret, shown);
    }
}
