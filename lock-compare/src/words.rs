//! Words shared by the sentences of several claims.

/// Returns how often something happened, in words.
pub(crate) fn times(count: u32) -> String {
    match count {
        0 => "never".into(),
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}
