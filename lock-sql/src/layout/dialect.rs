//! The differences between the databases.

use lock_core::Instant;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Stands for the time at which a script is sent.
const SENT: &str = "$SENT";

/// Writes the time of sending into a script, by the machine's boot clock.
pub(crate) fn stamp(script: &str, sent: Instant) -> String {
    script.replace(SENT, &sent.since(Instant::default()).as_micros().to_string())
}

/// A database that speaks SQL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite, in a file of this machine.
    Sqlite,
    /// MySQL 8, or MariaDB 10.11 and newer.
    MySql,
    /// PostgreSQL 12 and newer.
    Postgres,
}

impl Dialect {
    /// The database that URLs with this scheme, in lower case, are for.
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "sqlite" => Some(Self::Sqlite),
            "mysql" | "mariadb" => Some(Self::MySql),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }

    /// The store's name in errors and guarantees.
    pub(crate) fn store(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::MySql => "mysql",
            Self::Postgres => "postgres",
        }
    }

    /// Number of counters that hand out tokens. The database locks one of them for a moment while
    /// an attempt enters its queue; SQLite lets one write at a time anyway.
    pub(crate) fn slots(self) -> u64 {
        match self {
            Self::Sqlite => 1,
            Self::MySql | Self::Postgres => 256,
        }
    }

    /// The counter of a name. All clients of all versions must agree: FNV-1a.
    pub(crate) fn slot(self, name: &[u8]) -> u64 {
        let mix =
            |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        name.iter().fold(0xcbf2_9ce4_8422_2325, mix) % self.slots()
    }

    /// Bytes as a literal. Hexadecimal, so there is nothing to escape.
    pub(crate) fn bytes(self, bytes: &[u8]) -> String {
        // `E''` is read in the same way with any `standard_conforming_strings`.
        let [start, end] =
            if self == Self::Postgres { [r"E'\\x", "'::bytea"] } else { ["x'", "'"] };
        let mut hex = String::with_capacity(bytes.len() * 2 + 16);
        hex.push_str(start);
        for byte in bytes {
            hex.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
        }
        hex.push_str(end);
        hex
    }

    /// Bytes as a literal, or `NULL`.
    pub(crate) fn maybe_bytes(self, bytes: Option<&[u8]>) -> String {
        match (bytes, self) {
            (Some(bytes), _) => self.bytes(bytes),
            (None, Self::Postgres) => "NULL::bytea".to_owned(),
            (None, _) => "NULL".to_owned(),
        }
    }

    /// The clock of all expiries, in microseconds: the server's. SQLite has no server, so it is the
    /// machine's boot clock, which cannot be set. The clock is read when the script is sent, not
    /// when it is written: a lock's validity counts from the sending, and must not outlast its
    /// expiry.
    pub(crate) fn now(self) -> String {
        match self {
            Self::Sqlite => SENT.to_owned(),
            Self::MySql => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))".to_owned(),
            Self::Postgres => {
                "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint".to_owned()
            }
        }
    }

    /// The time of day, for people and for the ends of marks, in microseconds since 1970.
    pub(crate) fn wall(self) -> String {
        match self {
            Self::Sqlite => lock_core::wall_clock()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default()
                .as_micros()
                .to_string(),
            _ => self.now(),
        }
    }

    /// Several statements as one transaction, in one message. PostgreSQL runs each message as one
    /// transaction.
    pub(crate) fn transaction(self, statements: &str) -> String {
        match self {
            Self::Sqlite => format!("BEGIN IMMEDIATE; {statements} COMMIT;"),
            Self::MySql => format!("START TRANSACTION; {statements} COMMIT;"),
            Self::Postgres => statements.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_nothing_to_escape() {
        let odd = b"a'\\\0;";
        assert_eq!(Dialect::Sqlite.bytes(odd), "x'61275c003b'");
        assert_eq!(Dialect::MySql.bytes(b""), "x''");
        assert_eq!(Dialect::Postgres.bytes(odd), r"E'\\x61275c003b'::bytea");
        assert_eq!(Dialect::Postgres.maybe_bytes(None), "NULL::bytea");
    }

    #[test]
    fn the_time_is_that_of_sending() {
        let sent = Instant::default() + std::time::Duration::from_millis(7);
        let script = format!("{} - {}", Dialect::Sqlite.now(), Dialect::Sqlite.now());
        assert_eq!(stamp(&script, sent), "7000 - 7000");
    }

    /// Another slot would mean another order: a change needs a new version of the tables.
    #[test]
    fn slots_stay_where_they_are() {
        assert_eq!(Dialect::Postgres.slot(b"orders/42"), 223);
        assert_eq!(Dialect::Sqlite.slot(b"orders/42"), 0);
    }
}
