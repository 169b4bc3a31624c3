//! Converts the client library's errors to lock-core's.
//!
//! | what happened | error | effect |
//! |---|---|---|
//! | no connection to be had | `Unavailable` | none |
//! | connection broke, no answer in time | `Unavailable` | unknown |
//! | MySQL 1023, 1026, 1030, 1053, 1152, 1158 to 1161, 1180, 1184, 1317, 1927, 3169; PostgreSQL `08...`, `25P03`, `25P04`, `40003`, `57P01`, `57P02`, `57P04`, `58000`, `58030`; SQLite 10: the server ends the connection or the statement, or the disk fails, perhaps after the commit | `Unavailable` | unknown |
//! | MySQL 1020, 1040, 1129, 1135, 1203, 1205, 1206, 1213, 1226, 1969, 3024, 3032, 3168, 4031; PostgreSQL `40001`, `40P01`, `53300`, `55000`, `55P03`, `57014`, `57P03`, `57P05`; SQLite 5, 6, 15, 17: the database is busy, is being maintained, or takes no more connections | `Unavailable` | none |
//! | MySQL 1021, 1037, 1038, 1041, 1114; PostgreSQL `53...`; SQLite 7, 13: no room on the disk or in memory | `Unavailable` | none |
//! | MySQL 1290, 1792, 1836; PostgreSQL `25006`: the server takes no writes any more. The client ends its connections to it, and resolves the address anew | `Unavailable` | none |
//! | MySQL 1044, 1045, 1130, 1142, 1143, 1227, 1251, 1524, 1698, 1820, 1862, 3118, 3955; MariaDB 4150, 4151; PostgreSQL `28...`, `3F000`, `42501`; SQLite 3, 8, 14, 23 | `Denied` | none |
//! | a certificate that is not accepted, no TLS where it is needed, a password that would be sent in the open, a login method that the client library lacks | `Denied` | none |
//! | MySQL 1049; PostgreSQL `3D000`: there is no such database | `Misconfigured` | none |
//! | every other answer of the database, an answer that makes no sense | `Rejected` | unknown |

use std::fmt::Display;

use lock_core::{
    BoxError, Effect, Error,
    keep::errors::{denied, misconfigured, rejected, reworded, unavailable},
};
use sqlx::error::DatabaseError;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::wire::tls_error;
use crate::{layout::dialect::Dialect, wire::method};

/// Why a request has no usable answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// The same request may succeed soon.
    Passing,
    /// The same request may succeed soon, and this one may have taken effect: the database has ended
    /// it in the middle, or the connection broke.
    Ended,
    /// The same request may succeed elsewhere: this server takes no writes.
    ReadOnly,
    /// A retry does not help.
    Denied,
    /// The database is missing.
    NoDatabase,
    /// A table is missing.
    NoTable,
    Else,
}

impl Refusal {
    pub(crate) fn of(dialect: Dialect, error: &sqlx::Error) -> Self {
        use sqlx::Error::{
            ColumnDecode, ColumnIndexOutOfBounds, ColumnNotFound, Configuration, Database, Decode,
            Tls,
        };
        match error {
            Database(refused) => Self::of_database(dialect, &**refused),
            // The answer cannot come from this driver's tables.
            ColumnDecode { .. } | ColumnIndexOutOfBounds { .. } => Self::Else,
            ColumnNotFound(_) | Decode(_) => Self::Else,
            // The server did not prove its identity, the client would not send it the password, or
            // it has no way to log in.
            #[cfg(any(feature = "mysql", feature = "postgres"))]
            sqlx::Error::Io(error) if tls_error::is_distrust(error) => Self::Denied,
            Tls(_) | Configuration(_) => Self::Denied,
            error if method::lacking(dialect, error).is_some() => Self::Denied,
            _ => Self::Ended,
        }
    }

    fn of_database(dialect: Dialect, refused: &dyn DatabaseError) -> Self {
        let code = refused.code().unwrap_or_default();
        match dialect {
            Dialect::Sqlite => Self::of_sqlite(code.parse().unwrap_or_default(), refused.message()),
            Dialect::Postgres => Self::of_postgres(&code),
            Dialect::MySql => Self::of_mysql(mysql_number(refused)),
        }
    }

    /// Extended codes have the plain one in their lowest byte.
    fn of_sqlite(code: i32, message: &str) -> Self {
        match code & 0xff {
            5 | 6 | 7 | 13 | 15 | 17 => Self::Passing,
            10 => Self::Ended,
            3 | 8 | 14 | 23 => Self::Denied,
            1 if message.contains("no such table") => Self::NoTable,
            _ => Self::Else,
        }
    }

    fn of_postgres(code: &str) -> Self {
        match code {
            "25006" => Self::ReadOnly,
            "40001" | "40P01" | "55000" | "55P03" | "57014" | "57P03" | "57P05" => Self::Passing,
            "25P03" | "25P04" | "40003" | "57P01" | "57P02" | "57P04" => Self::Ended,
            "58000" | "58030" => Self::Ended,
            "3D000" => Self::NoDatabase,
            "3F000" | "42501" => Self::Denied,
            "42P01" => Self::NoTable,
            code => match code.get(..2) {
                Some("08") => Self::Ended,
                Some("28") => Self::Denied,
                Some("53") => Self::Passing,
                _ => Self::Else,
            },
        }
    }

    fn of_mysql(number: u16) -> Self {
        match number {
            1020 | 1040 | 1129 | 1135 | 1203 | 1205 | 1206 | 1213 | 1226 | 1969 => Self::Passing,
            1021 | 1037 | 1038 | 1041 | 1114 => Self::Passing,
            3024 | 3032 | 3168 | 4031 => Self::Passing,
            1290 | 1792 | 1836 => Self::ReadOnly,
            1023 | 1026 | 1030 | 1053 | 1152 | 1158..=1161 | 1180 | 1184 => Self::Ended,
            1317 | 1927 | 3169 => Self::Ended,
            1049 => Self::NoDatabase,
            1044 | 1130 | 1142 | 1143 | 1227 | 1251 | 1524 => Self::Denied,
            number if MYSQL_LOGINS.contains(&number) => Self::Denied,
            // A program's session may have no database.
            1046 | 1146 => Self::NoTable,
            _ => Self::Else,
        }
    }
}

#[cfg(feature = "mysql")]
fn mysql_number(error: &dyn DatabaseError) -> u16 {
    let error = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>();
    error.map_or(0, sqlx::mysql::MySqlDatabaseError::number)
}

#[cfg(not(feature = "mysql"))]
fn mysql_number(_: &dyn DatabaseError) -> u16 {
    0
}

/// MySQL's and MariaDB's numbers for a login that is refused: it is wrong (1045, 1698), its password
/// has expired (1820, 1862), or the account is locked (3118, 3955, 4150, 4151).
const MYSQL_LOGINS: [u16; 8] = [1045, 1698, 1820, 1862, 3118, 3955, 4150, 4151];

/// MySQL's number for a database that the user may not use. Of one that is missing, it says the same.
const NO_RIGHT: u16 = 1044;

/// Whether the server refuses a login with this error. Another refusal, as for a missing database,
/// comes after the login and does not count against the account.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn is_login(dialect: Dialect, error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|refused| match dialect {
        Dialect::Sqlite => false,
        Dialect::Postgres => refused.code().is_some_and(|code| code.starts_with("28")),
        Dialect::MySql => MYSQL_LOGINS.contains(&mysql_number(refused)),
    })
}

/// Converts the error of a request that was sent: see the table above.
pub(crate) fn convert(dialect: Dialect, op: &'static str, error: sqlx::Error) -> Error {
    let (store, refusal) = (dialect.store(), Refusal::of(dialect, &error));
    let source = worded(dialect, error);
    match refusal {
        Refusal::Passing | Refusal::ReadOnly => unavailable(store, op, Effect::None, source),
        Refusal::Ended => unavailable(store, op, Effect::Unknown, source),
        Refusal::Denied => denied(store, op, source),
        Refusal::NoDatabase => misconfigured(store, op, source),
        Refusal::NoTable | Refusal::Else => rejected(store, op, Effect::Unknown, source),
    }
}

/// Puts the error into plain words. Leaves out details for builders of the server or the library:
/// PostgreSQL's source line, and how to compile RSA in, which has a hole (RUSTSEC-2023-0071).
pub(crate) fn worded(dialect: Dialect, error: sqlx::Error) -> BoxError {
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    if let Some(text) = tls_error::explained(&error) {
        return reworded(text, error);
    }
    if let Some(text) = method::lacking(dialect, &error) {
        return reworded(text, error);
    }
    let text = match &error {
        sqlx::Error::Database(refused) if Refusal::of(dialect, &error) == Refusal::NoDatabase => {
            let (refused, code) = (refused.message(), refused.code().unwrap_or_default());
            format!("{refused} ({code}): create it (CREATE DATABASE), or name another one")
        }
        sqlx::Error::Database(refused) if dialect == Dialect::Postgres => {
            format!("{} ({})", refused.message(), refused.code().unwrap_or_default())
        }
        sqlx::Error::Database(refused) if mysql_number(&**refused) == NO_RIGHT => format!(
            "{}: there is none of this name, or the user has no right to it",
            refused.message()
        ),
        sqlx::Error::Configuration(why) if why.to_string().contains("mysql-rsa") => {
            "the server wants the password encrypted, and the connection has no TLS: switch it on \
             at the server, and use tls=verify"
                .to_owned()
        }
        _ => return error.into(),
    };
    reworded(text, error)
}

/// Same as [`convert`], for a request that was not sent.
pub(crate) fn not_sent(dialect: Dialect, op: &'static str, error: sqlx::Error) -> Error {
    match convert(dialect, op, error) {
        Error::Rejected { store, op, source, .. } => rejected(store, op, Effect::None, source),
        error => error,
    }
}

/// The same error with what it is about, if the store refused that for good.
pub(crate) fn about(what: impl Display, error: Error) -> Error {
    match error {
        Error::Denied { store, op, source } => {
            denied(store, op, reworded(format!("{what}: {source}"), source))
        }
        Error::Rejected { store, op, effect, source } => {
            rejected(store, op, effect, reworded(format!("{what}: {source}"), source))
        }
        error => error,
    }
}

/// The error of a request that is refused for good, if earlier sendings of it had this effect.
pub(crate) fn after(effect: Effect, error: Error) -> Error {
    match (effect, error) {
        (
            Effect::Unknown,
            Error::Denied { store, op, source } | Error::Rejected { store, op, source, .. },
        ) => rejected(store, op, effect, source),
        (_, error) => error,
    }
}

/// Whether a retry does not help against this error.
pub(crate) fn is_final(dialect: Dialect, error: &sqlx::Error) -> bool {
    use Refusal::{Ended, Passing, ReadOnly};
    !matches!(Refusal::of(dialect, error), Passing | Ended | ReadOnly)
}

/// The error for a server that cannot keep locks as it is set up.
pub(crate) fn unfit(dialect: Dialect, why: &str) -> Error {
    rejected(dialect.store(), "connect", Effect::None, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table() {
        use Refusal::{Denied, Else, Ended, NoDatabase, NoTable, Passing, ReadOnly};
        let sqlite: [(&[i32], _); 4] = [
            (&[5, 517, 6, 7, 13, 15], Passing),
            (&[10, 522], Ended),
            (&[8, 14], Denied),
            (&[11, 26], Else),
        ];
        for (codes, expected) in sqlite {
            codes
                .iter()
                .for_each(|code| assert_eq!(Refusal::of_sqlite(*code, ""), expected, "{code}"));
        }
        assert_eq!(Refusal::of_sqlite(1, "no such table: x"), NoTable);
        let postgres: [(&[&str], _); 7] = [
            (&["40001", "40P01", "53100", "53200", "53300", "55000", "57P03", "57P05"], Passing),
            (&["25006"], ReadOnly),
            (&["57P01", "57P04", "08006", "58030"], Ended),
            (&["28P01", "42501"], Denied),
            (&["3D000"], NoDatabase),
            (&["42P01"], NoTable),
            (&["23505", "54000", "XX001"], Else),
        ];
        for (codes, expected) in postgres {
            codes
                .iter()
                .for_each(|code| assert_eq!(Refusal::of_postgres(code), expected, "{code}"));
        }
        let mysql: [(&[u16], _); 7] = [
            (&[1020, 1021, 1040, 1114, 1129, 1213, 1205, 3024, 3032], Passing),
            (&[1290, 1836], ReadOnly),
            (&[1030, 1180, 1317, 1927], Ended),
            (&[1049], NoDatabase),
            (&[1045, 1130, 1251, 1820, 1862, 3118, 3955, 4150, 4151], Denied),
            (&[1046, 1146], NoTable),
            (&[1062, 1153], Else),
        ];
        for (numbers, expected) in mysql {
            numbers.iter().for_each(|n| assert_eq!(Refusal::of_mysql(*n), expected, "{n}"));
        }
    }

    #[test]
    fn a_password_that_needs_tls_is_told_for_each_mode() {
        let why = "RSA auth backend disabled; enable feature `mysql-rsa` or use TLS.";
        let shown = worded(Dialect::MySql, sqlx::Error::Configuration(why.into())).to_string();
        // With tls=prefer the server has none.
        assert!(
            shown.contains("switch it on at the server") && !shown.contains("prefer"),
            "{shown}"
        );
    }

    #[test]
    fn a_broken_connection_leaves_the_effect_unknown() {
        let broken = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(convert(Dialect::Postgres, "acquire", broken).effect(), Effect::Unknown);
    }
}
