//! MySQL and MariaDB.

use std::{collections::BTreeMap, sync::Arc};

use lock_core::{
    Encryption, Error, Secret, User,
    keep::errors::{invalid, reworded},
};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, MySqlPool, Row as _,
    mysql::{MySqlConnectOptions, MySqlSslMode},
    raw_sql,
};

use crate::{
    config::server::Server,
    error,
    layout::{dialect::Dialect, row::Rows},
    wire::{
        failure::Failure,
        given_client,
        hosts::{Fetched, Hosts, Link, Plans},
        remote::{Remote, address, hosts, set, texts},
        verdict::Origin,
    },
};

/// A statement must see the data that is there when it runs, and must not wait for others for long.
/// It ends by itself when its client has given up; MySQL and MariaDB have different settings for
/// that. Others may be set for the whole server: a statement must read and change all the rows that
/// it names, and a commit must not begin another transaction.
const SETUP: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
    SET SESSION innodb_lock_wait_timeout = 2, SESSION lock_wait_timeout = 2, SESSION autocommit = 1, \
    SESSION sql_select_limit = 18446744073709551615, SESSION sql_safe_updates = 0, \
    SESSION sql_big_selects = 1, SESSION completion_type = 0, SESSION unique_checks = 1 \
    /*M! , SESSION max_statement_time = 3 */ /*!50708 , SESSION max_execution_time = 3000 */; \
    SHOW VARIABLES WHERE variable_name IN ('read_only', 'innodb_read_only', 'log_bin', \
    'binlog_format', 'wsrep_on', 'wsrep_provider', 'group_replication_group_name', \
    'group_replication_single_primary_mode')";

/// Each node of Galera ends locks by its own clock, and grants a lock before it has the other
/// nodes' grants.
const GALERA: &str = "the server is a node of Galera (wsrep_on): each node has its own clock, and another \
    one may grant what this one has granted; use a server with one writing primary";

/// As with Galera.
const SEVERAL_PRIMARIES: &str = "the server is in a group with several primaries \
    (group_replication_single_primary_mode=OFF): another one may grant what this one has granted; \
    use a group with a single primary";

/// InnoDB then refuses every write (error 1665).
const STATEMENTS: &str = "the server writes its binary log by statement (binlog_format=STATEMENT), with \
    which InnoDB refuses writes at READ COMMITTED; set binlog_format to ROW or MIXED";

/// The port that is named by default.
const PORT: u16 = 3306;

/// One client's connections to a server.
pub(crate) type MySql = Remote<MySqlConnection>;

impl MySql {
    /// Sends nothing yet.
    pub(crate) fn new(server: &Server) -> Result<Self, Error> {
        server.check_direct()?;
        Ok(Self::by(Some(address(server)), hosts(server, PORT, options)?))
    }

    /// Uses a pool's options. Sends nothing yet.
    pub(crate) fn of_pool(pool: &MySqlPool) -> Result<Self, Error> {
        let options = pool.connect_options();
        let Some(database) = options.get_database() else {
            let allowed = "one that the locks' tables are in (MySqlConnectOptions::database)";
            return Err(invalid("database of the pool", "none", allowed));
        };
        let server = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let hosts = Arc::new(Hosts::one(given_client::way(pool, of_locks)));
        Ok(Self::by(Some(format!("{server}/{database}")), hosts))
    }
}

impl Link for MySqlConnection {
    const DIALECT: Dialect = Dialect::MySql;

    // MySQL's own time limit ends no commit. A user sees its own sessions without a right.
    const HUNG_COMMITS: Option<&str> = Some(
        "SELECT x'' AS attempt, COUNT(*) AS number FROM information_schema.processlist \
         WHERE user = SUBSTRING_INDEX(CURRENT_USER(), '@', 1) \
         AND state LIKE 'Waiting for semi-sync ACK%'",
    );

    async fn make(options: &MySqlConnectOptions) -> Result<(Self, Option<Origin>), Failure> {
        let connect = async {
            let mut connection = Box::pin(MySqlConnection::connect_with(options)).await?;
            let answers = raw_sql(SETUP).fetch_all(&mut connection).await?;
            let settings = answers.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            Ok((connection, settings.collect::<sqlx::Result<_>>()?))
        };
        let (connection, settings) = connect.await.map_err(|why| unconnected(options, why))?;
        is_fit(&settings)?;
        Ok((connection, None))
    }

    async fn fetch(&mut self, script: String, _: Option<&mut Plans>) -> Fetched {
        raw_sql(AssertSqlSafe(script)).fetch_all(self).await.map(|rows| Rows::read(&rows))
    }
}

/// The server refuses a login in the same words, whether the password is wrong or TLS is missing.
fn unconnected(options: &MySqlConnectOptions, why: sqlx::Error) -> Failure {
    let refused =
        why.as_database_error().filter(|error| error.message().contains("(using password"));
    let Some(refused) = refused else { return Failure::unconnected(Dialect::MySql, why) };
    let or = match options.get_ssl_mode() {
        MySqlSslMode::Disabled => "the server demands TLS, and this is tls=off",
        _ => "the account demands a certificate of the client (options cert and key)",
    };
    let text = format!("{}: the login is wrong, or {or}", refused.message());
    Failure::Login(reworded(text, why))
}

/// Checks that a server with these settings can keep locks.
fn is_fit(settings: &BTreeMap<String, String>) -> Result<(), Failure> {
    let is = |name: &str, value: &str| {
        settings.get(name).is_some_and(|set| set.eq_ignore_ascii_case(value))
    };
    let is_set = |name: &str| settings.contains_key(name) && !is(name, "OFF");
    // The variables are there if the plugin is, also without a group.
    let is_in_group = settings.get("group_replication_group_name").is_some_and(|n| !n.is_empty());
    let unfit = if is_set("wsrep_on") && !is("wsrep_provider", "none") {
        GALERA
    } else if is_in_group && is("group_replication_single_primary_mode", "OFF") {
        SEVERAL_PRIMARIES
    } else if is_set("log_bin") && is("binlog_format", "STATEMENT") {
        STATEMENTS
    } else if is_set("read_only") || is_set("innodb_read_only") {
        return Err(Failure::down("the server is read-only (read_only): a replica?"));
    } else {
        return Ok(());
    };
    Err(Failure::Barred(error::unfit(Dialect::MySql, unfit)))
}

/// Keeps the pool's settings, except the ones that this driver's statements rely on.
fn of_locks(options: MySqlConnectOptions) -> MySqlConnectOptions {
    options
        .charset("utf8mb4")
        .pipes_as_concat(true)
        .no_engine_substitution(true)
        .timezone(Some("+00:00".to_owned()))
        .set_names(true)
        .disable_statement_logging()
}

fn options(server: &Server, host: &str, port: u16) -> Result<MySqlConnectOptions, Error> {
    let options = MySqlConnectOptions::new().host(host).port(port);
    let user = server.user.as_ref().map(User::read).transpose()?;
    let options = set(options, user.as_deref(), MySqlConnectOptions::username);
    let options = set(options, server.database.as_deref(), MySqlConnectOptions::database);
    let tls = &server.tls;
    let password = server.password.as_ref().map(Secret::read).transpose()?;
    let [ca, cert, key] = texts(tls)?;
    let options = set(options, password.as_deref(), MySqlConnectOptions::password);
    let options = set(options, ca, |options, ca| options.ssl_ca_from_pem(ca.into_bytes()));
    let options = set(options, cert, MySqlConnectOptions::ssl_client_cert_from_pem);
    let options = set(options, key, MySqlConnectOptions::ssl_client_key_from_pem);
    let options = options.ssl_mode(match tls.mode {
        Encryption::Off => MySqlSslMode::Disabled,
        Encryption::Prefer => MySqlSslMode::Preferred,
        _ => MySqlSslMode::VerifyIdentity,
    });
    Ok(options.disable_statement_logging())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(settings: &[(&str, &str)]) -> Result<(), Failure> {
        is_fit(&settings.iter().map(|(name, set)| ((*name).into(), (*set).into())).collect())
    }

    #[test]
    fn a_server_that_cannot_keep_locks_is_recognised_by_its_settings() {
        let barred = |settings| matches!(fits(settings), Err(Failure::Barred(_)));
        assert!(barred(&[("wsrep_on", "ON"), ("wsrep_provider", "/usr/lib/libgalera_smm.so")]));
        assert!(barred(&[("log_bin", "ON"), ("binlog_format", "STATEMENT")]));
        let group = |name, single| {
            [
                ("group_replication_group_name", name),
                ("group_replication_single_primary_mode", single),
            ]
        };
        assert!(barred(&group("8a94f357-aab4-11df-86ab-c80aa9429562", "OFF")));
        assert!(fits(&group("8a94f357-aab4-11df-86ab-c80aa9429562", "ON")).is_ok());
        assert!(fits(&group("", "OFF")).is_ok(), "the plugin without a group");
        for settings in [[("read_only", "ON")], [("innodb_read_only", "ON")]] {
            assert!(matches!(fits(&settings), Err(Failure::Down(_))), "{settings:?}");
        }
        let usual = [("log_bin", "OFF"), ("binlog_format", "STATEMENT"), ("read_only", "OFF")];
        assert!(fits(&usual).is_ok());
        assert!(fits(&[("log_bin", "ON"), ("binlog_format", "MIXED")]).is_ok());
        assert!(fits(&[("wsrep_on", "OFF"), ("innodb_read_only", "OFF")]).is_ok());
    }
}
