//! How names become keys.

/// How the name of a lock becomes its key, path or directory.
///
/// The option `layout` of a URL, and the field of that name in the configuration of each driver
/// with a store that other clients use, too.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Layout {
    /// Percent-encoded: letters, digits, `-`, `_` and `.` stay as they are. Any name works.
    #[default]
    Escaped,
    /// Unchanged, for foreign clients that use such keys. Names that the store cannot tell apart
    /// are refused.
    Native,
}

impl Layout {
    /// The words of a URL, for [`Options::choice`](crate::Options::choice).
    pub const CHOICES: &'static [(&'static str, Self)] =
        &[("escaped", Self::Escaped), ("native", Self::Native)];
}
