//! Settings of a server under which locks may get lost: told when a client connects.

use lock_core::{Fencing, StoreUrl};
use lock_lab::{MariaDb, Postgres};
use lock_sql::Dialect;

use crate::servers::{Database, eventually, locks, on_both};

on_both!(a_password_that_a_machine_on_the_way_can_get_is_told);

async fn cautions(url: &str) -> (String, bool) {
    let locks = locks(url).await;
    let guarantees = locks.guarantees();
    (guarantees.cautions.join("\n"), matches!(guarantees.fencing, Fencing::Strict(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsafe_settings_of_postgres_are_told() {
    let server = Postgres::builder().arg("-c").arg("full_page_writes=off").start().await.unwrap();
    let (told, strict) = cautions(&server.url()).await;
    for setting in ["fsync", "full_page_writes"] {
        assert!(told.contains(setting), "{told}");
    }
    assert!(!strict);
    for table in ["entries", "marks"] {
        let alter = format!("ALTER TABLE distlock_v1_{table} SET");
        server.sql(&format!("{alter} UNLOGGED")).await.unwrap();
        let (told, _) = cautions(&server.url()).await;
        assert!(told.contains("UNLOGGED"), "{table}: {told}");
        server.sql(&format!("{alter} LOGGED")).await.unwrap();
    }
    let (told, _) = cautions(&(server.url() + "?failover=managed")).await;
    assert!(told.contains("synchronous_standby_names"), "{told}");

    let server = Postgres::builder().durable().start().await.unwrap();
    assert_eq!(cautions(&server.url()).await, (String::new(), true));
    assert!(!cautions(&(server.url() + "?failover=managed")).await.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsafe_settings_of_mariadb_are_told() {
    let log = ["--log-bin", "--server-id=1", "--binlog-format=ROW", "--skip-innodb-doublewrite"];
    let builder = log.iter().fold(MariaDb::builder(), |builder, arg| builder.arg(*arg));
    let server = builder.start().await.unwrap();
    let (told, strict) = cautions(&server.url()).await;
    for setting in ["innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite"] {
        assert!(told.contains(setting), "{told}");
    }
    assert!(!strict);
    let (told, _) = cautions(&(server.url() + "?failover=managed")).await;
    assert!(told.contains("rpl_semi_sync_master_enabled"), "{told}");

    let server = MariaDb::builder().durable().start().await.unwrap();
    assert_eq!(cautions(&server.url()).await, (String::new(), true));
}

async fn a_password_that_a_machine_on_the_way_can_get_is_told(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (told, _) = cautions(&server.url()).await;
    assert!(!told.contains("tls=verify"), "{told}");
    // The resolver reads a number as an address; this client does not know that it is a near one.
    let url = server.url().replace("127.0.0.1", &0x7f00_0001.to_string());
    let (told, _) = cautions(&url).await;
    assert!(told.contains("tls=verify"), "{told}");
}

const REPLICA: &str = "the server is a replica";

/// Of a server that replicates, every user is told; of one that has paused, those that may ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_takes_writes_is_told() {
    let log = ["--log-bin", "--server-id=1", "--binlog-format=ROW"];
    let builder = log.iter().fold(MariaDb::builder(), |builder, arg| builder.arg(*arg));
    let primary = builder.start().await.unwrap();
    primary.sql_as_admin("RESET MASTER").await.unwrap();
    let password = StoreUrl::parse(&primary.url()).unwrap().password().unwrap().to_owned();
    let replica = MariaDb::builder().arg("--server-id=2").start().await.unwrap();
    let (told, _) = cautions(&replica.url()).await;
    assert!(!told.contains(REPLICA), "{told}");
    let follow = format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'admin', \
         MASTER_PASSWORD = '{password}'; START SLAVE",
        primary.addr().port()
    );
    replica.sql_as_admin(&follow).await.unwrap();
    eventually("it is told", async || cautions(&replica.url()).await.0.contains(REPLICA)).await;
    replica.sql_as_admin("STOP SLAVE").await.unwrap();
    let (told, _) = cautions(&replica.url()).await;
    assert!(!told.contains(REPLICA), "{told}");
    let as_admin = replica.url().replace("//lab:", "//admin:");
    let (told, _) = cautions(&as_admin).await;
    assert!(told.contains(REPLICA), "{told}");
}
