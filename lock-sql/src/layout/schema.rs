//! The tables, version 1.

use crate::layout::dialect::Dialect;

/// The row among the counters that holds the value that the token floor was raised to. No name uses
/// it as its counter.
pub(crate) const FLOOR: i64 = -1;

/// Returns the statements that create the locks' tables, for a database whose user may not create
/// tables. Run them once as a user with that right, and give the locks' user `SELECT`, `INSERT`,
/// `UPDATE` and `DELETE`. Running them again does nothing.
///
/// ```
/// # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
/// use distlock::sql::{Dialect, schema};
///
/// println!("{}", schema(Dialect::Postgres));
/// ```
pub fn schema(dialect: Dialect) -> String {
    // Clients that find no tables run this at the same time, also while other clients use the
    // tables already. So no statement locks a whole table that is there.
    let (bytes, text, integer, end) = match dialect {
        Dialect::Sqlite => ("BLOB", "BLOB", "INTEGER", " WITHOUT ROWID"),
        Dialect::MySql => ("VARBINARY(512)", "LONGBLOB", "BIGINT", " ENGINE=InnoDB"),
        Dialect::Postgres => ("BYTEA", "BYTEA", "BIGINT", ""),
    };
    let id = if dialect == Dialect::MySql { "BINARY(16)" } else { bytes };
    let mut sql = format!(
        "CREATE TABLE IF NOT EXISTS distlock_v1_slots (
  slot {integer} NOT NULL PRIMARY KEY,
  token {integer} NOT NULL
){end};
CREATE TABLE IF NOT EXISTS distlock_v1_entries (
  name {bytes} NOT NULL,
  token {integer} NOT NULL,
  attempt {id} NOT NULL UNIQUE,
  client {id} NOT NULL,
  kind {integer} NOT NULL,
  weight {integer} NOT NULL,
  lim {integer} NOT NULL,
  ttl {integer} NOT NULL,
  expires {integer} NOT NULL,
  since {integer} NOT NULL,
  holder {text} NOT NULL,
  value {text},
  version {integer} NOT NULL,
  granted {integer},
  PRIMARY KEY (name, token)
){end};
CREATE TABLE IF NOT EXISTS distlock_v1_marks (
  name {bytes} NOT NULL PRIMARY KEY,
  token {integer} NOT NULL,
  host {text} NOT NULL,
  done {integer} NOT NULL,
  ends {integer} NOT NULL
){end};
"
    );
    if dialect == Dialect::Sqlite {
        sql.push_str(
            "CREATE TABLE IF NOT EXISTS distlock_v1_meta (\n  boot TEXT NOT NULL,\n  \
             clock TEXT NOT NULL\n);\n",
        );
    }
    sql + &fill(dialect)
}

/// A statement that adds the counters that are missing. They begin above every token that is left:
/// with a smaller one, a new attempt would come before a holder.
pub(crate) fn fill(dialect: Dialect) -> String {
    let slots: Vec<_> = (0..dialect.slots()).map(|slot| format!("SELECT {slot} AS slot")).collect();
    let greatest = |table| format!("SELECT MAX(token) AS token FROM distlock_v1_{table}");
    let greatest = ["slots", "entries"].map(greatest).join(" UNION ALL ");
    let slots = slots.join(" UNION ALL ");
    let (insert, unless) = match dialect {
        Dialect::MySql => ("INSERT IGNORE", ""),
        Dialect::Sqlite | Dialect::Postgres => ("INSERT", " ON CONFLICT DO NOTHING"),
    };
    format!(
        "{insert} INTO distlock_v1_slots (slot, token) SELECT wanted.slot, \
         (SELECT COALESCE(MAX(token), 0) FROM ({greatest}) AS present) \
         FROM ({slots}) AS wanted WHERE NOT EXISTS (SELECT 1 FROM distlock_v1_slots AS present \
         WHERE present.slot = wanted.slot){unless};\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients in use read and write these columns: another form needs other names of tables.
    #[test]
    fn the_tables_of_layout_1_are_made() {
        const TABLES: &str = "CREATE TABLE IF NOT EXISTS distlock_v1_slots (
  slot BIGINT NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS distlock_v1_entries (
  name BYTEA NOT NULL,
  token BIGINT NOT NULL,
  attempt BYTEA NOT NULL UNIQUE,
  client BYTEA NOT NULL,
  kind BIGINT NOT NULL,
  weight BIGINT NOT NULL,
  lim BIGINT NOT NULL,
  ttl BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  since BIGINT NOT NULL,
  holder BYTEA NOT NULL,
  value BYTEA,
  version BIGINT NOT NULL,
  granted BIGINT,
  PRIMARY KEY (name, token)
);
CREATE TABLE IF NOT EXISTS distlock_v1_marks (
  name BYTEA NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL,
  host BYTEA NOT NULL,
  done BIGINT NOT NULL,
  ends BIGINT NOT NULL
);
";
        assert_eq!(schema(Dialect::Postgres), format!("{TABLES}{}", fill(Dialect::Postgres)));
    }
}
