//! The caller's own client: its connect string, and which connectors cannot keep locks.

use lock_core::{Error, Result, keep::errors::invalid};
use zookeeper_client::Connector;

use crate::layout::path;

/// The port of a host that names none.
pub(crate) const DEFAULT_PORT: u16 = 2181;
/// Stands before a host that is reached by TLS.
pub(crate) const TLS: &str = "tcp+tls://";
/// The client crate shows these by `Debug` only; a test fails if that changes.
const UNFIT: [(&str, &str); 3] = [
    ("session: Some(", "it continues a session, which would be taken away from its client"),
    ("detached: true", "it is detached: its sessions, and so its locks, would stay after close"),
    ("fail_eagerly: true", "it fails eagerly: a session would not survive a lost connection"),
];

/// Returns the hosts, each with a port and perhaps [`TLS`] before it, and the chroot or nothing.
pub(crate) fn parse(cluster: &str) -> Result<(Vec<String>, String)> {
    let wrong = |reason: String| Error::InvalidUrl { url: cluster.to_owned(), reason };
    let (first, last) = cluster.rsplit_once(',').map_or((None, cluster), |(f, l)| (Some(f), l));
    let after = last.find("://").map_or(0, |at| at + "://".len());
    let (last, chroot) = match last[after..].find('/') {
        Some(at) => last.split_at(after + at),
        None => (last, ""),
    };
    let hosts = first.into_iter().flat_map(|first| first.split(',')).chain([last]);
    let hosts = hosts.map(|host| host_of(host).map_err(&wrong)).collect::<Result<_>>()?;
    let chroot = if chroot == "/" { "" } else { chroot };
    if !chroot.is_empty() {
        path::check_path(chroot).map_err(|reason| wrong(format!("path: {reason}")))?;
    }
    Ok((hosts, chroot.to_owned()))
}

pub(crate) fn host_of(host: &str) -> Result<String, String> {
    let (tls, addr) = match host.strip_prefix(TLS) {
        Some(addr) => (TLS, addr),
        None => ("", host.strip_prefix("tcp://").unwrap_or(host)),
    };
    // The colons of an IPv6 address are in brackets.
    let port = addr[addr.rfind(']').unwrap_or(0)..].rsplit_once(':').map(|(_, port)| port);
    let name = addr.len() - port.map_or(0, |port| port.len() + 1);
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if name == 0 || addr.contains('/') || port.is_some_and(|port| !is_port(port)) {
        return Err(format!("{host:?} is no host: expected HOST[:PORT]"));
    }
    Ok(match port {
        Some(_) => format!("{tls}{addr}"),
        None => format!("{tls}{addr}:{DEFAULT_PORT}"),
    })
}

/// Refuses a connector whose sessions cannot keep locks.
pub(crate) fn check(connector: &Connector) -> Result<()> {
    let shown = format!("{connector:?}");
    match UNFIT.iter().find(|(what, _)| shown.contains(what)) {
        None => Ok(()),
        Some((_, why)) => {
            let allowed = "one that makes sessions of its own, with Client::connector()";
            Err(invalid("connector", *why, allowed))
        }
    }
}

#[cfg(test)]
mod tests {
    use zookeeper_client::Client;

    use super::*;

    #[test]
    fn a_connect_string_is_read_as_the_client_crate_reads_it() {
        for (cluster, hosts, chroot) in [
            ("a", vec!["a:2181"], ""),
            ("a:1,b,c:3/app/x", vec!["a:1", "b:2181", "c:3"], "/app/x"),
            ("tcp://a,tcp+tls://b:1/x", vec!["a:2181", "tcp+tls://b:1"], "/x"),
            ("[::1],[::2]:7/", vec!["[::1]:2181", "[::2]:7"], ""),
        ] {
            let (found, path) = parse(cluster).unwrap();
            assert_eq!(
                (found, path.as_str()),
                (hosts.into_iter().map(Into::into).collect(), chroot)
            );
        }
        for wrong in ["", "a,,b", "a:x", "a:0", "a/x,b", "a//x", "a/x/", ":1", "ssl://a"] {
            let error = parse(wrong).unwrap_err();
            assert!(matches!(error, Error::InvalidUrl { .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_connector_that_cannot_keep_locks_is_refused() {
        let fit = Client::connector().with_auth("digest", b"me:s3cret").with_readonly(true);
        check(&fit).unwrap();
        let unfit = [
            (fit.clone().with_detached(), "detached"),
            (fit.clone().with_fail_eagerly(), "eagerly"),
        ];
        for (connector, why) in unfit {
            let error = check(&connector).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
        }
    }
}
