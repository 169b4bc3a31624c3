//! Servers that cannot keep locks as they are set up, and poolers.

use lock_core::{Effect, Error};
use lock_lab::{MariaDb, PgBouncer};
use lock_sql::Dialect;

use crate::servers::{Database, connect, locks};

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

/// A pooler is recognised by the option that it does not pass on: one refuses it, and one drops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_is_refused_with_the_reason() {
    let server = Database::start(Dialect::Postgres).await;
    locks(&server.url()).await;
    for more in ["", "ignore_startup_parameters = extra_float_digits, options"] {
        let builder = PgBouncer::before(&server.url()).line("pool_mode = transaction");
        let pooler = builder.line(more).start().await.unwrap();
        let reason = reason(connect(&pooler.url()).await.unwrap_err());
        assert!(reason.contains("PgBouncer") && reason.contains("pooler=transaction"), "{reason}");
    }
}
