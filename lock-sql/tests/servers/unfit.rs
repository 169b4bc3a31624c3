//! Servers that cannot keep locks as they are set up, and poolers.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path};

use lock_core::{Effect, Error};
use lock_lab::MariaDb;
use lock_sql::{Dialect, schema};
use tokio::process::{Child, Command};

use crate::servers::{Database, connect, eventually, locks, rights::user};

fn reason(error: Error) -> String {
    assert!(matches!(error, Error::Rejected { effect: Effect::None, .. }), "{error:?}");
    error.to_string()
}

/// InnoDB would refuse each write.
#[tokio::test]
async fn a_binary_log_by_statement_is_refused_with_the_reason() {
    let log = ["--log-bin", "--server-id=1"];
    let start = async |format: &'static str| {
        let builder = log.iter().fold(MariaDb::builder(), |builder, arg| builder.arg(*arg));
        builder.arg(format!("--binlog-format={format}")).start().await.unwrap()
    };
    let server = start("STATEMENT").await;
    let reason = reason(connect(&server.url()).await.unwrap_err());
    assert!(reason.contains("binlog_format"), "{reason}");
    let server = start("MIXED").await;
    locks(&server.url()).await;
}

/// A pooler between clients and a PostgreSQL.
struct Pooler {
    port: u16,
    _process: Child,
    _directory: tempfile::TempDir,
}

impl Pooler {
    fn start(server: &Database, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = directory.path().join("pooler.ini");
        let lines = format!(
            "[databases]\nlab = host=127.0.0.1 port={} dbname=lab user=plain password=plain\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\n{more}\n",
            server.addr().port()
        );
        fs::write(&config, lines).unwrap();
        let mut command = Command::new("pgbouncer");
        if fs::metadata(Path::new("/proc/self")).is_ok_and(|own| is_root(&own)) {
            command.args(["-u", "postgres"]);
        }
        let process = command.arg(config).arg("-q").kill_on_drop(true).spawn();
        let process = process.expect("a pooler: apt-get install pgbouncer");
        Self { port, _process: process, _directory: directory }
    }

    fn url(&self) -> String {
        format!("postgres://plain:plain@127.0.0.1:{}/lab", self.port)
    }
}

fn is_root(own: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(own) == 0
}

/// A pooler is recognised by the option that it does not pass on: one refuses it, and one drops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_is_refused_with_the_reason() {
    let server = Database::start(Dialect::Postgres).await;
    let (create, grant) = user(Dialect::Postgres);
    server.sql(create).await;
    server.sql(&schema(Dialect::Postgres)).await;
    server.sql(&grant).await;
    locks(&server.url_as("plain:plain")).await;
    for more in ["", "ignore_startup_parameters = extra_float_digits, options"] {
        let pooler = Pooler::start(&server, more);
        let mut refused = None;
        eventually("the pooler is there", async || {
            refused = connect(&pooler.url()).await.err();
            !matches!(refused, Some(Error::Unavailable { .. }))
        })
        .await;
        let reason = reason(refused.expect("a pooler that is taken for a server"));
        assert!(reason.contains("PgBouncer"), "{reason}");
    }
}
