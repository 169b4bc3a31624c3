//! The name of a lock.

use std::{
    borrow::{Borrow, Cow},
    fmt,
    sync::Arc,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that stay unescaped in a store's key: letters, digits, `-`, `_`, `.`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The name of a lock: any non-empty UTF-8 of at most 512 bytes.
///
/// Names are compared byte by byte: case counts, and `a` and `a/b` are independent locks.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::LockName;
///
/// let name = LockName::new("orders/42")?;
/// assert_eq!(name.escaped(), "orders%2F42");
/// assert!(LockName::new("").is_err());
/// # Ok::<(), lock_core::Error>(())
/// ```
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(try_from = "String"))]
pub struct LockName(pub(super) Arc<str>);

impl LockName {
    /// The longest name, in bytes. ZooKeeper and etcd take longer keys; 512 bytes stay below every
    /// store's limit even when each byte is escaped as three.
    pub const MAX_BYTES: usize = 512;

    /// The name as the caller wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as one component of a store's key: percent-encoded, injective, never empty, never
    /// `.` or `..`. A plain name (letters, digits, `-`, `_`, `.`) is unchanged, so foreign clients
    /// can use the same name.
    pub fn escaped(&self) -> Cow<'_, str> {
        match self.as_str() {
            "." => Cow::Borrowed("%2E"),
            ".." => Cow::Borrowed("%2E%2E"),
            name => utf8_percent_encode(name, ESCAPED).into(),
        }
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// Names hash and compare like their text, so a map by names can be read with a `&str`.
impl Borrow<str> for LockName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LockName {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for plain in ["orders", "a.b-c_D9", "...", ".hidden"] {
            assert_eq!(LockName::new(plain).unwrap().escaped(), plain);
        }
    }

    #[test]
    fn a_component_without_a_name_is_refused() {
        for component in ["", "a b", "a/b", "%41", "%2f", "%ff", "%"] {
            assert_eq!(LockName::from_escaped(component), None, "{component}");
        }
    }

    #[test]
    fn a_map_by_names_is_read_with_text() {
        let name: LockName = "orders".parse().unwrap();
        assert_eq!(LockName::try_from("orders".to_owned()).unwrap(), name);
        let hashed = std::collections::HashMap::from([(name.clone(), 1)]);
        let sorted = std::collections::BTreeMap::from([(name, 2)]);
        assert_eq!((hashed.get("orders"), sorted.get("orders")), (Some(&1), Some(&2)));
        assert!("".parse::<LockName>().is_err() && LockName::try_from(String::new()).is_err());
    }

    #[test]
    fn too_long_is_refused_at_the_byte() {
        assert!(LockName::new("é".repeat(256)).is_ok());
        assert!(LockName::new("é".repeat(257)).is_err());
    }

    proptest! {
        #[test]
        fn escaping_is_injective(a in ".{1,40}", b in ".{1,40}") {
            let escaped = |s: &str| LockName::new(s).unwrap().escaped().into_owned();
            prop_assert_eq!(escaped(&a) == escaped(&b), a == b);
            prop_assert!(!escaped(&a).contains('/'));
            prop_assert_eq!(LockName::from_escaped(&escaped(&a)), LockName::new(&a).ok());
            prop_assert!(escaped(&a) != "." && escaped(&a) != "..");
        }
    }
}
