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

/// Every store that [`connect`](crate::connect()) knows, compiled in or not.
pub const STORES: &[Store] = &[
    Store {
        scheme: "sqlite",
        aliases: &[],
        url: "sqlite:[PATH]",
        port: None,
        feature: "sqlite",
        compiled_in: cfg!(feature = "sqlite"),
        promises: "one machine, first come first served, strict tokens; nothing to install",
    },
    Store {
        scheme: "etcd",
        aliases: &[],
        url: "etcd://HOST[:2379][,HOST..]",
        port: Some(2379),
        feature: "etcd",
        compiled_in: cfg!(feature = "etcd"),
        promises: "survives the loss of a node, first come first served, strict tokens",
    },
    Store {
        scheme: "zookeeper",
        aliases: &[],
        url: "zookeeper://HOST[:2181][,HOST..][/CHROOT]",
        port: Some(2181),
        feature: "zookeeper",
        compiled_in: cfg!(feature = "zookeeper"),
        promises: "survives the loss of a node, first come first served, strict tokens",
    },
    Store {
        scheme: "redis",
        aliases: &["valkey"],
        url: "redis://HOST[:6379][/DB]",
        port: Some(6379),
        feature: "redis",
        compiled_in: cfg!(feature = "redis"),
        promises: "one server, first come first served, tokens as a best effort",
    },
    Store {
        scheme: "postgres",
        aliases: &["postgresql"],
        url: "postgres://HOST[:5432][/DB]",
        port: Some(5432),
        feature: "postgres",
        compiled_in: cfg!(feature = "postgres"),
        promises: "one server, first come first served, strict tokens",
    },
    Store {
        scheme: "mysql",
        aliases: &["mariadb"],
        url: "mysql://HOST[:3306]/DB",
        port: Some(3306),
        feature: "mysql",
        compiled_in: cfg!(feature = "mysql"),
        promises: "one server, first come first served, strict tokens",
    },
    Store {
        scheme: "memory",
        aliases: &[],
        url: "memory:[NAME]",
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

    pub(crate) fn schemes(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.scheme].into_iter().chain(self.aliases.iter().copied())
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
        }
    }
}
