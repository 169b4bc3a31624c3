//! What a server says about itself in its answer to `HELLO`.

use redis::Value;

use super::{answer::bytes, info::is_too_old};

/// Whether the server is a node of a cluster.
pub(super) fn is_of_a_cluster(hello: &Value) -> bool {
    field(hello, "mode").is_some_and(|mode| mode == "cluster")
}

/// Returns the version of a Redis that is too old.
pub(super) fn too_old(hello: &Value) -> Option<String> {
    let is_redis = field(hello, "server").is_some_and(|server| server == "redis");
    field(hello, "version").filter(|version| is_redis && is_too_old(version))
}

/// Reads a field: of a map, or of a flat list in the older protocol.
fn field(hello: &Value, name: &str) -> Option<String> {
    let text = |value: &Value| String::from_utf8(bytes(value)?).ok();
    let mut fields = hello.as_map_iter()?;
    fields.find_map(|(key, value)| (text(key)? == name).then(|| text(value)).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_told_by_its_version() {
        let hello = |server: &str, version: &str| {
            let texts = ["server", server, "version", version, "mode", "standalone"];
            let texts = texts.map(|text| Value::BulkString(text.as_bytes().to_vec()));
            Value::Array(texts.to_vec())
        };
        for (server, version, old) in [
            ("redis", "6.0.16", true),
            ("redis", "5.0.14", true),
            ("redis", "6.2.0", false),
            ("redis", "7.0.15", false),
            ("redis", "255.255.255", false),
            ("valkey", "0.1.0", false),
            ("redis", "unstable", false),
        ] {
            assert_eq!(too_old(&hello(server, version)).is_some(), old, "{server} {version}");
        }
    }
}
