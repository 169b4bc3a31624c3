//! The mark of work that is done, as its node has it. Pure.
//!
//! Its period is counted by the servers' clock: it begins with the last write of the node. Its
//! length is that between the times in the text, which are those of the client that wrote it.

use std::time::SystemTime;

use lock_core::{Mark, keep::marks};
use zookeeper_client::Stat;

/// A mark, by the servers' clock.
pub(crate) struct Dated {
    pub(crate) mark: Mark,
    pub(crate) has_ended: bool,
    /// The version of its node.
    pub(crate) version: i32,
}

/// Reads a mark. `now`: the servers' time.
pub(crate) fn read(text: &[u8], stat: &Stat, now: i64) -> Option<Dated> {
    let written = marks::read(text)?;
    let period = written.ends_at.duration_since(written.done_at).ok()?;
    let done_at = time(stat.mtime)?;
    let ends_at = done_at.checked_add(period)?;
    let mark = Mark::new(written.host, written.token, done_at, ends_at);
    Some(Dated { mark, has_ended: ends_at <= time(now)?, version: stat.version })
}

fn time(millis: i64) -> Option<SystemTime> {
    marks::time(u64::try_from(millis).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The clock of the client that wrote it does not count.
    #[test]
    fn a_period_counts_from_the_write_of_the_node() {
        let stat = |mtime| Stat {
            mtime,
            version: 3,
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ctime: 0,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: 0,
            data_length: 0,
            num_children: 0,
        };
        let ended = |now| read(b"34 1000 3000 node", &stat(50_000), now).unwrap().has_ended;
        assert!(!ended(50_000) && !ended(51_999) && ended(52_000));
        let dated = read(b"34 1000 3000 node", &stat(50_000), 50_000).unwrap();
        let period = dated.mark.ends_at.duration_since(dated.mark.done_at).unwrap();
        assert_eq!((period, dated.version), (Duration::from_secs(2), 3));
        assert!(read(b"34 3000 1000 node", &stat(50_000), 0).is_none());
    }
}
