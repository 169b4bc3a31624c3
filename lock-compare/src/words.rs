//! Words of sentences that several claims say.

/// How often something happened.
pub(crate) fn times(count: u32) -> String {
    match count {
        0 => "never".into(),
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}
