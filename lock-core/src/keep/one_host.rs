//! The address in a URL of a store with one server.

use crate::{Result, StoreUrl};

/// The host and the port of a URL; 127.0.0.1 if it names no host. `several` is the reason in the
/// error for a URL with several hosts.
pub fn one_host(url: &StoreUrl, default_port: u16, several: &str) -> Result<(String, u16)> {
    let hosts = url.hosts(default_port);
    let [host] = hosts.as_slice() else { return Err(url.error(several)) };
    split(host).ok_or_else(|| url.error("expected HOST:PORT"))
}

/// The brackets of an IPv6 address belong to the URL, not to the address.
fn split(host: &str) -> Option<(String, u16)> {
    let (host, port) = host.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_host_with_or_without_a_port() {
        for (url, expected) in [
            ("x://h", Some(("h", 7))),
            ("x://h:8/y", Some(("h", 8))),
            ("x://[::1]", Some(("::1", 7))),
            ("x://[::1]:8", Some(("::1", 8))),
            ("x:", Some(("127.0.0.1", 7))),
            ("x://a,b", None),
        ] {
            let read = one_host(&StoreUrl::parse(url).unwrap(), 7, "one host");
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(read.ok(), expected, "{url}");
        }
    }
}
