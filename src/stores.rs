//! The list of stores.

/// A store, and the form of its URLs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Store {
    /// The scheme of its URLs.
    pub scheme: &'static str,
    /// Other schemes for the same.
    pub aliases: &'static [&'static str],
    /// The form of its URLs.
    pub url: &'static str,
    /// The forms of URLs for other ways in which it is deployed, each with a scheme of its own.
    pub deployments: &'static [Deployment],
    /// The default port of its server; `None` if there is no server.
    pub port: Option<u16>,
    /// The feature that compiles its driver in.
    pub feature: &'static str,
    /// Whether that feature is on.
    pub compiled_in: bool,
    /// Its promises in a few words. [`Locks::guarantees`](crate::Locks::guarantees) returns the
    /// promises of one deployment.
    pub promises: &'static str,
}

/// Another way to deploy a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Deployment {
    /// The scheme of its URLs.
    pub scheme: &'static str,
    /// The form of its URLs.
    pub url: &'static str,
    /// The default port of the servers in its URL.
    pub port: u16,
    /// What it promises, in a few words.
    pub promises: &'static str,
}

/// Redis with more than one server.
const REDIS: &[Deployment] = &[
    Deployment {
        scheme: "redis+sentinel",
        url: "redis+sentinel://SENTINEL[:26379][,SENTINEL..]/SERVICE[/DB]",
        port: 26379,
        promises: "follows the primary; a failover may lose locks, and their holders are told",
    },
    Deployment {
        scheme: "redis+cluster",
        url: "redis+cluster://HOST[:6379][,HOST..]",
        port: 6379,
        promises: "names spread over primaries; a failover may lose locks, and holders are told",
    },
    Deployment {
        scheme: "redlock",
        url: "redlock://HOST[:6379],HOST,HOST[,HOST..]",
        port: 6379,
        promises: "a majority of servers that know nothing of each other; exclusive locks only",
    },
];

/// Every store that [`connect`](crate::connect()) knows, compiled in or not.
pub const STORES: &[Store] = &[
    Store {
        scheme: "sqlite",
        aliases: &[],
        url: "sqlite:[PATH]",
        deployments: &[],
        port: None,
        feature: "sqlite",
        compiled_in: cfg!(feature = "sqlite"),
        promises: "one machine, first come first served, strict tokens; nothing to install",
    },
    Store {
        scheme: "etcd",
        aliases: &["etcds"],
        url: "etcd://HOST[:2379][,HOST..]",
        deployments: &[],
        port: Some(2379),
        feature: "etcd",
        compiled_in: cfg!(feature = "etcd"),
        promises: "survives the loss of a node, first come first served, strict tokens",
    },
    Store {
        scheme: "zookeeper",
        aliases: &[],
        url: "zookeeper://HOST[:2181][,HOST..][/CHROOT]",
        deployments: &[],
        port: Some(2181),
        feature: "zookeeper",
        compiled_in: cfg!(feature = "zookeeper"),
        promises: "survives the loss of a node, first come first served, strict tokens",
    },
    Store {
        scheme: "redis",
        aliases: &["rediss", "valkey", "valkeys"],
        url: "redis://HOST[:6379][/DB]",
        deployments: REDIS,
        port: Some(6379),
        feature: "redis",
        compiled_in: cfg!(feature = "redis"),
        promises: "one server, first come first served, tokens as a best effort",
    },
    Store {
        scheme: "postgres",
        aliases: &["postgresql"],
        url: "postgres://HOST[:5432][/DB]",
        deployments: &[],
        port: Some(5432),
        feature: "postgres",
        compiled_in: cfg!(feature = "postgres"),
        promises: "one server, first come first served, strict tokens",
    },
    Store {
        scheme: "mysql",
        aliases: &["mariadb"],
        url: "mysql://HOST[:3306]/DB",
        deployments: &[],
        port: Some(3306),
        feature: "mysql",
        compiled_in: cfg!(feature = "mysql"),
        promises: "one server, first come first served, strict tokens",
    },
    Store {
        scheme: "memory",
        aliases: &[],
        url: "memory:[NAME]",
        deployments: &[],
        port: None,
        feature: "memory",
        compiled_in: cfg!(feature = "memory"),
        promises: "one process only: to try things out",
    },
];

impl Store {
    /// Returns the store for a URL scheme in lower case.
    pub fn of_scheme(scheme: &str) -> Option<&'static Self> {
        STORES.iter().find(|store| store.schemes().any(|known| known == scheme))
    }

    /// Returns the default port of the servers in a URL of this scheme, in lower case. `None` for a
    /// store without servers, and for an unknown scheme.
    pub fn port_of(scheme: &str) -> Option<u16> {
        let store = Self::of_scheme(scheme)?;
        let mut deployments = store.deployments.iter();
        deployments.find(|other| other.scheme == scheme).map(|other| other.port).or(store.port)
    }

    pub(crate) fn schemes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let deployments = self.deployments.iter().map(|other| other.scheme);
        [self.scheme].into_iter().chain(self.aliases.iter().copied()).chain(deployments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form repeats the scheme and the port.
    #[test]
    fn the_url_form_repeats_scheme_and_port() {
        for store in STORES {
            let port = store.port.map(|port| format!("[:{port}]"));
            assert!(store.url.starts_with(&format!("{}:", store.scheme)), "{store:?}");
            assert!(port.is_none_or(|port| store.url.contains(&port)), "{store:?}");
            assert_eq!(store.port.is_some(), store.url.contains("://"), "{store:?}");
            for other in store.deployments {
                assert!(other.url.starts_with(&format!("{}://", other.scheme)), "{other:?}");
                assert!(other.url.contains(&format!("[:{}]", other.port)), "{other:?}");
                assert_eq!(Store::port_of(other.scheme), Some(other.port));
            }
        }
    }
}
