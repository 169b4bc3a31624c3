//! What keys look like. Layout version 1.

use std::sync::Arc;

use lock_core::{Error, LockName, Result};

/// How names become keys: `<prefix><name>/<lease id in hex>.<slot in hex>`.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) prefix: String,
    pub(crate) native: bool,
}

impl Layout {
    /// What the keys of a name's queue start with, and no other name's.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] for a name that would collide in the native layout.
    pub(crate) fn queue(&self, name: &LockName) -> Result<Arc<str>> {
        if !self.native {
            return Ok([&self.prefix, &*name.escaped(), "/"].concat().into());
        }
        if name.as_str().contains('/') {
            return Err(Error::InvalidName {
                name: name.as_str().chars().take(64).collect(),
                reason: "in etcd's native layout a name with '/' would stand in the queue of the \
                         name before the '/'; put that part into ?prefix="
                    .to_owned(),
            });
        }
        Ok([&self.prefix, name.as_str(), "/"].concat().into())
    }
}

/// The key of a client's slot in a queue; see [`Slots`](crate::slots::Slots).
pub(crate) fn key(queue: &str, lease: i64, slot: u32) -> String {
    format!("{queue}{lease:x}.{slot:x}")
}

/// The queue that a key belongs to.
pub(crate) fn queue_of(key: &[u8]) -> &[u8] {
    let end = key.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    &key[..end]
}

/// Whether a key is of this layout, and not a foreign client's.
pub(crate) fn is_ours(key: &[u8]) -> bool {
    let entry = std::str::from_utf8(&key[queue_of(key).len()..]).ok();
    let parts = entry.and_then(|entry| entry.split_once('.'));
    parts.is_some_and(|(lease, slot)| {
        i64::from_str_radix(lease, 16).is_ok() && u32::from_str_radix(slot, 16).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(native: bool) -> Layout {
        Layout { prefix: "ns/".to_owned(), native }
    }

    #[test]
    fn no_queue_is_the_start_of_another() {
        let queue = |name: &str| layout(false).queue(&LockName::new(name).unwrap()).unwrap();
        assert_eq!(&*queue("a"), "ns/a/");
        assert_eq!(&*queue("a/b"), "ns/a%2Fb/");
        assert!(!queue("a/b").starts_with(&*queue("a")));
    }

    #[test]
    fn the_native_layout_takes_names_as_they_are_and_refuses_collisions() {
        let queue = |name: &str| layout(true).queue(&LockName::new(name).unwrap());
        assert_eq!(&*queue("a b%").unwrap(), "ns/a b%/");
        assert!(queue("a/b").unwrap_err().to_string().contains("prefix"));
    }

    #[test]
    fn our_keys_are_told_from_foreign_ones() {
        let key = key("ns/a/", 0x1f, 10);
        assert_eq!(key, "ns/a/1f.a");
        assert_eq!(queue_of(key.as_bytes()), b"ns/a/");
        assert!(is_ours(key.as_bytes()));
        for foreign in ["ns/a/694d8a5c3e7f", "ns/a/", "ns/a/x.y", "ns/a/1f.y", "ns/a/1f.-1"] {
            assert!(!is_ours(foreign.as_bytes()), "{foreign}");
        }
    }
}
