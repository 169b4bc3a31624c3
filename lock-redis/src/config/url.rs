//! The servers that a URL names.

use lock_core::{Result, StoreUrl, keep::one_host::one_host};

use super::{Address, Target};

/// Reads the servers and the database of a URL.
pub(super) fn place(url: &StoreUrl) -> Result<(Target, i64)> {
    match url.scheme() {
        "redis" | "rediss" | "valkey" | "valkeys" => {
            let several =
                "expected one host; several are redis+sentinel://.. or redis+cluster://..";
            let (host, port) = one_host(url, Address::PORT, several)?;
            Ok((Target::Server(Address::new(host, port)), database(url)?))
        }
        "redis+sentinel" => sentinels(url),
        // The nodes that are named name all others.
        "redis+cluster" => {
            Ok((Target::Cluster { nodes: addresses(url, Address::PORT)? }, database(url)?))
        }
        _ => Err(url
            .error("expected redis://.., valkey://.., redis+sentinel://.. or redis+cluster://..")),
    }
}

/// Reads the number of a database, which is the path of a URL.
pub(crate) fn database(url: &StoreUrl) -> Result<i64> {
    let wrong = |_| url.error("the path must be a database's number");
    match url.path() {
        "" => Ok(0),
        path => path.parse::<u16>().map(i64::from).map_err(wrong),
    }
}

/// Reads the hosts of a URL.
pub(crate) fn addresses(url: &StoreUrl, default_port: u16) -> Result<Vec<Address>> {
    let read = |host: &String| Address::parse(host, default_port).map_err(|wrong| url.error(wrong));
    url.hosts(default_port).iter().map(read).collect()
}

/// `redis+sentinel://s1,s2/SERVICE` or `../SERVICE/DATABASE`.
fn sentinels(url: &StoreUrl) -> Result<(Target, i64)> {
    let wrong = "expected redis+sentinel://HOST,HOST,../SERVICE or ../SERVICE/DATABASE";
    let (service, database) = url.path().split_once('/').unwrap_or((url.path(), "0"));
    let database = database.parse::<u16>().map_err(|_| url.error(wrong))?.into();
    if service.is_empty() {
        return Err(url.error(wrong));
    }
    let sentinels = addresses(url, Address::SENTINEL_PORT)?;
    Ok((Target::Sentinel { sentinels, service: service.to_owned() }, database))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::{Layout, Secret, Tls, User};

    use super::*;
    use crate::config::{Mode, RedisConfig};

    fn config(url: &str) -> Result<RedisConfig> {
        RedisConfig::from_url(&StoreUrl::parse(url)?)
    }

    #[test]
    fn everything_can_be_said_in_a_url() {
        let c = config("redis://me:s@[::1]:7000/3?ttl=2s&prefix=app:&layout=native&mode=simple");
        let c = c.unwrap();
        assert_eq!(c.target, Target::Server(Address::new("::1", 7000)));
        assert_eq!(c.database, 3);
        assert_eq!((c.user, c.password), (Some("me".into()), Some(Secret::text("s"))));
        assert_eq!((c.ttl, c.prefix.as_str()), (Some(Duration::from_secs(2)), "app:"));
        assert_eq!((c.layout, c.mode), (Layout::Native, Mode::Simple));
    }

    #[test]
    fn sentinels_are_read_with_their_service() {
        let c = config(
            "redis+sentinel://me@a,b:7/main/3?password_file=/p&wait_replicas=2&tls=verify&ca=/ca\
             &sentinel_user=s&sentinel_password_env=P&connect_timeout=1s",
        );
        let c = c.unwrap();
        let sentinels = vec![Address::new("a", 26379), Address::new("b", 7)];
        assert_eq!(c.target, Target::Sentinel { sentinels, service: "main".to_owned() });
        assert_eq!((c.database, c.wait_replicas), (3, 2));
        assert_eq!(c.password, Some(Secret::file("/p")));
        assert_eq!(
            (c.sentinel_user, c.sentinel_password),
            (Some("s".into()), Some(Secret::env("P")))
        );
        assert_eq!(c.tls, Tls::verify().ca("/ca"));
        assert_eq!(c.timeouts.connect, Some(Duration::from_secs(1)));
    }

    #[test]
    fn users_may_be_elsewhere() {
        let url = "redis+sentinel://h/s?user_env=U&password_file=/p&sentinel_password_file=/p";
        for (option, user) in
            [("sentinel_user_file=/u", User::file("/u")), ("sentinel_user_env=U", User::env("U"))]
        {
            let c = config(&format!("{url}&{option}")).unwrap();
            assert_eq!((c.user, c.sentinel_user), (Some(User::env("U")), Some(user)));
            assert_eq!(c.sentinel_password, Some(Secret::file("/p")));
        }
    }

    #[test]
    fn bad_urls_are_refused_and_say_why() {
        for (url, word) in [
            ("rediss://h?tls=off", "tls=verify"),
            ("redis+sentinel://a,b", "SERVICE"),
            ("redis+sentinel://a,b/s/x", "DATABASE"),
            ("redis://h?wait_replicas=101", "0 to 100"),
            ("redis://h?wait_replicas=x", "0 to 100"),
            ("redis://h?sentinel_user=x", "sentinel_user"),
            (
                "redis+sentinel://h/s?sentinel_password_file=f&sentinel_password_env=E",
                "one password",
            ),
            ("redis+sentinel://h/s?sentinel_user=u&sentinel_user_env=E", "one user"),
            ("redis+sentinel://h/s?sentinel_user_file=u&sentinel_user_env=E", "one user"),
            ("redis://h?sentinel_user_file=x", "sentinel_user_file"),
            ("redis://me@h?user_file=/u", "one user"),
            ("redis://h?ca=/x", "tls=verify"),
            ("redis://a,b", "one host"),
            ("redis://h/x", "database"),
            ("redis://h?ttll=1s", "ttll"),
            ("redis://h?ttl=1", "ttl"),
            ("redis://h?mode=fast", "queue, simple"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
