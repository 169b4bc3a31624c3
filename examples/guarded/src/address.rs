//! The address of a server.

/// Host and port of a URL without login and path.
pub fn address(url: &str) -> &str {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    address.split(['/', '?']).next().unwrap_or(address)
}
