//! The parts of a URL: the rules for a scheme, a host and a port, and decoding of escapes.

use percent_encoding::percent_decode_str;

pub(super) fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// The port's text. The colons of a bare IPv6 address, which needs brackets, mark no port.
pub(super) fn port_of(host: &str) -> Option<&str> {
    let (name, port) = host.rsplit_once(':')?;
    (!name.contains(':') || name.ends_with(']')).then_some(port)
}

pub(super) fn is_host(host: &str) -> bool {
    let is_port = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0)
    };
    let name = match port_of(host) {
        Some(port) if is_port(port) => &host[..host.len() - port.len() - 1],
        Some(_) => return false,
        None => host,
    };
    match name.strip_prefix('[') {
        Some(address) => address.ends_with(']') && address.contains(':'),
        None => {
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "[]#:@%".contains(c))
        }
    }
}

pub(super) fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| "an escape (%XX) is not UTF-8".to_owned())
}
