//! Marks of work that is done, as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{FencingToken, Mark, wall_clock};

/// The mark of work that is done now, with this much of its period left.
pub fn done_now(host: &str, token: FencingToken, left: Duration) -> Mark {
    let now = wall_clock();
    Mark::new(host, token, now, now + left)
}

/// The text of a mark: its token, when it was written, when its period ends, and the host. Times
/// are milliseconds since 1970.
pub fn text(mark: &Mark) -> String {
    let Mark { host, token, done_at, ends_at } = mark;
    format!("{token} {} {} {host}", millis(*done_at), millis(*ends_at))
}

/// Reads a text of [`text`]; `None` for another one.
pub fn read(text: &[u8]) -> Option<Mark> {
    let mut parts = std::str::from_utf8(text).ok()?.splitn(4, ' ');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let token = FencingToken::new(number()?);
    let (done_at, ends_at) = (time(number()?)?, time(number()?)?);
    Some(Mark::new(parts.next()?, token, done_at, ends_at))
}

fn millis(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// The time of milliseconds since 1970; `None` if it is beyond what the system can tell.
pub fn time(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clients have left it in stores.
    #[test]
    fn a_mark_of_layout_1_is_read() {
        const TEXT: &str = "34 1764288000000 1764360000000 node 7";
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let token = FencingToken::new(34);
        let mark = Mark::new("node 7", token, at(1_764_288_000_000), at(1_764_360_000_000));
        assert_eq!(text(&mark), TEXT);
        assert_eq!(read(TEXT.as_bytes()), Some(mark));
        for odd in ["", "34", "34 1 2", "x 1 2 node", "34 -1 2 node", "34 1 99999999999999999999 n"]
        {
            assert_eq!(read(odd.as_bytes()), None, "{odd}");
        }
    }
}
