//! The directory of each lock. Pure.

use lock_core::{Error, Layout, LockName, Result};

use crate::layout::child;

/// Returns the directory of a lock, as a path without the chroot.
pub(crate) fn directory(prefix: &str, layout: Layout, name: &LockName) -> Result<String> {
    let path = match layout {
        Layout::Escaped => name.escaped(),
        _ => {
            check_native(name.as_str()).map_err(|reason| invalid(name, reason))?;
            name.as_str().into()
        }
    };
    let directory = below(prefix, &path);
    // Also no name below them.
    if let Some(taken @ (FLOOR_RECORD | MARKS)) = path.split('/').next() {
        return Err(invalid(name, format!("{taken} has the token floor, or marks of work")));
    }
    if directory == "/zookeeper" || directory.starts_with("/zookeeper/") {
        return Err(invalid(name, "/zookeeper belongs to ZooKeeper".to_owned()));
    }
    Ok(directory)
}

/// The name of the node with the record.
const FLOOR_RECORD: &str = "%floor";

/// Returns the node with the [record of the token floor](crate::layout::floor). No name is escaped
/// to this.
pub(crate) fn floor_record(prefix: &str) -> String {
    below(prefix, FLOOR_RECORD)
}

/// The name of the directory of the marks.
const MARKS: &str = "%done";

/// Returns the directory of the marks of work that is done. No name is escaped to this.
pub(crate) fn marks(prefix: &str) -> String {
    below(prefix, MARKS)
}

/// Returns the node of a name's mark, which is named alike in both layouts.
pub(crate) fn mark(prefix: &str, name: &LockName) -> String {
    format!("{}/{}", marks(prefix), name.escaped())
}

/// Only the prefix `/` ends in a slash.
fn below(prefix: &str, path: &str) -> String {
    format!("{}/{path}", prefix.trim_end_matches('/'))
}

fn invalid(name: &LockName, reason: String) -> Error {
    Error::InvalidName { name: name.as_str().chars().take(64).collect(), reason }
}

fn check_native(name: &str) -> Result<(), String> {
    check_components(name)?;
    // `a/x-0000000001` is a child of the lock `a` and would count as an entry of its queue.
    match name.split('/').skip(1).find(|part| child::sequence(part).is_some()) {
        Some(part) => Err(format!("{part:?} looks like an entry of a lock's queue")),
        None => Ok(()),
    }
}

/// Checks a path whose first character is `/`.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    match path.strip_prefix('/') {
        Some("") => Ok(()),
        Some(rest) => check_components(rest),
        None => Err("a path starts with /".to_owned()),
    }
}

fn check_components(path: &str) -> Result<(), String> {
    for part in path.split('/') {
        match part {
            "" => return Err("a part of the path is empty".to_owned()),
            "." | ".." => return Err("a path has no . or .. in it".to_owned()),
            _ => {}
        }
    }
    match path.chars().find(|c| is_forbidden(*c)) {
        Some(c) => Err(format!("ZooKeeper forbids {c:?}")),
        None => Ok(()),
    }
}

fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(prefix: &str, layout: Layout, name: &str) -> Result<String> {
        super::directory(prefix, layout, &LockName::new(name).unwrap())
    }

    #[test]
    fn plain_names_are_the_same_in_both_layouts() {
        for layout in [Layout::Escaped, Layout::Native] {
            assert_eq!(directory("/locks", layout, "orders").unwrap(), "/locks/orders");
        }
    }

    #[test]
    fn escaped_takes_every_name_as_one_component() {
        for name in ["a/b", ".", "..", "\u{1}", "\u{e000}", "%", "a/", "\u{ffff}", "x 0000000001"] {
            let path = directory("/locks", Layout::Escaped, name).unwrap();
            assert_eq!(path.matches('/').count(), 2, "{path}");
            check_path(&path).unwrap();
        }
    }

    #[test]
    fn native_refuses_forbidden_and_colliding_names() {
        assert_eq!(directory("/", Layout::Native, "a/b").unwrap(), "/a/b");
        assert_eq!(directory("/l", Layout::Native, "a0000000001").unwrap(), "/l/a0000000001");
        for name in ["/a", "a/", "a//b", ".", "a/..", "a\u{1}", "\u{fff5}", "a/x-0000000001"] {
            let error = directory("/locks", Layout::Native, name).unwrap_err();
            assert!(matches!(error, Error::InvalidName { .. }), "{name:?}");
        }
    }

    #[test]
    fn no_lock_is_where_the_token_floor_is() {
        let reserved = |prefix| [(prefix, floor_record(prefix)), (prefix, marks(prefix))];
        for (prefix, path) in ["/", "/locks"].into_iter().flat_map(reserved) {
            let last = path.rsplit_once('/').unwrap().1.to_owned();
            assert_eq!(LockName::from_escaped(&last), None);
            for below in ["", "/x", "/x/y"] {
                let name = format!("{last}{below}");
                let error = directory(prefix, Layout::Native, &name).unwrap_err();
                assert!(matches!(error, Error::InvalidName { .. }), "{name}: {error}");
                assert!(directory(prefix, Layout::Escaped, &name).is_ok());
            }
            for other in ["%floors", "%floor-", "a/%floor", "%"] {
                assert!(directory(prefix, Layout::Native, other).is_ok(), "{other}");
            }
            let escaped = directory(prefix, Layout::Escaped, &last).unwrap();
            assert_ne!(escaped, path);
        }
    }

    #[test]
    fn zookeepers_own_directory_is_refused() {
        assert!(directory("/", Layout::Escaped, "zookeeper").is_err());
        assert!(directory("/", Layout::Native, "zookeeper/quota").is_err());
        assert!(directory("/locks", Layout::Native, "zookeeper").is_ok());
    }
}
