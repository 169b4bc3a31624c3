//! The results of queries: entries, and numbers.

use std::{
    ops::Deref,
    time::{Duration, SystemTime},
};

use lock_core::{FencingToken, Instant, Kind, Mark};
use sqlx::{ColumnIndex, Decode, Type};
use uuid::Uuid;

/// An entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: Vec<u8>,
    pub(crate) token: u64,
    pub(crate) attempt: Uuid,
    pub(crate) kind: Kind,
    /// Time until it expires unless it is renewed. Zero if it has expired and is not removed yet.
    pub(crate) left: Duration,
    pub(crate) holder: Option<String>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) version: u64,
    pub(crate) since: SystemTime,
    /// When it was granted, if that is recorded.
    pub(crate) granted: Option<SystemTime>,
}

/// Writes a kind as a number, a weight and a limit.
pub(crate) fn written(kind: Kind) -> (u8, u32, u32) {
    match kind {
        Kind::Shared => (SHARED, 0, 0),
        Kind::Permit { weight, limit } => (PERMIT, weight, limit),
        _ => (EXCLUSIVE, 0, 0),
    }
}

pub(crate) const EXCLUSIVE: u8 = 0;
pub(crate) const SHARED: u8 = 1;
pub(crate) const PERMIT: u8 = 2;

/// Reads a kind. An unreadable one counts as exclusive: no other attempt enters beside it.
fn read_kind(kind: i64, weight: i64, limit: i64) -> Kind {
    match (u8::try_from(kind), u32::try_from(weight), u32::try_from(limit)) {
        (Ok(SHARED), ..) => Kind::Shared,
        (Ok(PERMIT), Ok(weight), Ok(limit)) => Kind::Permit { weight, limit },
        _ => Kind::Exclusive,
    }
}

/// The results of a script's statements, in their order.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) entries: Vec<Row>,
    /// Each with the attempt that it is about; the nil id if there is none.
    pub(crate) numbers: Vec<(Uuid, u64)>,
    /// How many rows had one column: those that a statement only locks.
    pub(crate) locked: usize,
    /// The marks of work that is done, each with its name.
    pub(crate) marks: Vec<(Vec<u8>, Mark)>,
    /// How many rows were of another kind: the server's own tables.
    pub(crate) foreign: usize,
    /// Where the data comes from, as a message behind a pooler tells: see `wire::verdict`.
    pub(crate) origin: Option<[u64; ORIGIN]>,
}

/// The columns of an entry.
const ENTRY: usize = 12;
/// The columns of an origin.
const ORIGIN: usize = 4;

impl Deref for Rows {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.entries
    }
}

impl Rows {
    /// The number at this place, if the script returns as many.
    pub(crate) fn number(&self, at: usize) -> Option<u64> {
        self.numbers.get(at).map(|(_, number)| *number)
    }

    /// Reads rows. An entry has 12 columns, a mark 5, a number 2. A row with one column only locks a
    /// row, or sends a notification; one with four tells the origin. Rows with one column, and those
    /// of the server's own tables, are counted.
    pub(crate) fn read<R: sqlx::Row>(rows: &[R]) -> sqlx::Result<Self>
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
        usize: ColumnIndex<R>,
    {
        let mut read = Self::default();
        for row in rows {
            match row.len() {
                0 => {}
                1 => read.locked += 1,
                2 => {
                    let attempt: Vec<u8> = row.try_get(0)?;
                    let attempt = Uuid::from_slice(&attempt).unwrap_or_default();
                    read.numbers.push((attempt, unsigned(row.try_get(1)?)));
                }
                ORIGIN => {
                    let mut origin = [0; ORIGIN];
                    for (at, number) in origin.iter_mut().enumerate() {
                        *number = unsigned(row.try_get(at)?);
                    }
                    read.origin = Some(origin);
                }
                5 => {
                    let host: Vec<u8> = row.try_get(2)?;
                    let token = FencingToken::new(unsigned(row.try_get(1)?));
                    let (done, ends) = (time(row.try_get(3)?), time(row.try_get(4)?));
                    let mark = Mark::new(String::from_utf8_lossy(&host), token, done, ends);
                    read.marks.push((row.try_get(0)?, mark));
                }
                columns if columns > ENTRY => read.foreign += 1,
                _ => {
                    let attempt: Vec<u8> = row.try_get(2)?;
                    let holder: Option<Vec<u8>> = row.try_get(7)?;
                    read.entries.push(Row {
                        name: row.try_get(0)?,
                        token: unsigned(row.try_get(1)?),
                        attempt: Uuid::from_slice(&attempt).unwrap_or_default(),
                        kind: read_kind(row.try_get(3)?, row.try_get(4)?, row.try_get(5)?),
                        left: Duration::from_micros(unsigned(row.try_get(6)?)),
                        holder: holder.map(|text| String::from_utf8_lossy(&text).into_owned()),
                        value: row.try_get(8)?,
                        version: unsigned(row.try_get(9)?),
                        since: time(row.try_get(10)?),
                        granted: row.try_get::<Option<i64>, _>(11)?.map(time),
                    });
                }
            }
        }
        Ok(read)
    }
}

impl Row {
    /// Returns the time from which validity counts: `sent` minus the part of the TTL that had
    /// passed. `sent` is when the answered request was sent. A part had passed if an earlier
    /// request of the same attempt set the expiry, and its reply was lost.
    pub(crate) fn confirmed(&self, sent: Instant, ttl: Duration) -> Instant {
        sent - ttl.saturating_sub(self.left)
    }
}

fn time(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(unsigned(micros))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_kind_counts_as_exclusive() {
        assert_eq!(read_kind(0, 0, 0), Kind::Exclusive);
        assert_eq!(read_kind(1, 0, 0), Kind::Shared);
        assert_eq!(read_kind(2, 1, 3), Kind::Permit { weight: 1, limit: 3 });
        for odd in [(2, -1, 3), (2, 1, i64::MAX), (3, 0, 0), (-1, 0, 0), (257, 0, 0)] {
            assert_eq!(read_kind(odd.0, odd.1, odd.2), Kind::Exclusive, "{odd:?}");
        }
    }
}
