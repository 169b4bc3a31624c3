//! A private MariaDB.

use lock_lab::{LabError, MariaDb, state_of};

use crate::{
    is_open,
    support::{eventually, until},
    timed_out,
};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn answers_as_a_user_of_its_own() -> Result {
    let maria = MariaDb::start().await?;
    let url = maria.url();
    let (login, place) = url.split_once('@').unwrap();
    assert!(login.starts_with("mysql://lab:") && login.ends_with("%40%3A%2F%25"), "{url}");
    assert_eq!(place, format!("{}/lab", maria.addr()));
    assert_eq!(
        maria.sql("SELECT current_user(), database(), NULL").await?,
        "lab@127.0.0.1\tlab\tNULL"
    );
    assert_eq!(maria.sql("SELECT 1; SELECT 'ä'").await?, "1\nä");
    assert!(maria.log().contains("ready for connections"));
    Ok(())
}

#[tokio::test]
async fn the_user_may_do_all_at_home_and_nothing_elsewhere() -> Result {
    let maria = MariaDb::start().await?;
    maria.sql("CREATE USER guest IDENTIFIED BY 'x'; GRANT SELECT ON lab.* TO guest").await?;
    let error = maria.sql("SELECT * FROM mysql.global_priv").await.unwrap_err();
    assert!(matches!(&error, LabError::Reply { reply, .. } if reply.contains("denied")), "{error}");
    let secret = maria.url();
    let secret = secret.split(['/', ':', '%']).nth(4).unwrap();
    assert!(secret.len() == 32 && !format!("{maria:?}").contains(secret));
    Ok(())
}

#[tokio::test]
async fn two_servers_share_no_data() -> Result {
    let (one, two) = tokio::try_join!(MariaDb::start(), MariaDb::start())?;
    one.sql("CREATE TABLE t (a INT)").await?;
    assert_eq!(one.sql("SHOW TABLES").await?, "t");
    assert_eq!(two.sql("SHOW TABLES").await?, "");
    Ok(())
}

#[tokio::test]
async fn kill_and_restart_keep_the_data() -> Result {
    let maria = MariaDb::start().await?;
    let (addr, pid, url) = (maria.addr(), maria.pid(), maria.url());
    maria.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (7)").await?;
    maria.kill();
    assert!(!is_open(addr));
    assert_eq!(state_of(pid), None, "not even a zombie is left");
    assert!(matches!(maria.sql("SELECT 1").await, Err(LabError::Io { .. })));
    maria.restart().await?;
    assert_eq!((maria.addr(), maria.url(), maria.pid() == pid), (addr, url, false));
    assert_eq!(maria.sql("SELECT a FROM t").await?, "7");
    maria.restart().await?; // also while it runs
    assert_eq!(maria.sql("SELECT a FROM t").await?, "7");
    Ok(())
}

#[tokio::test]
async fn stops_and_resumes() -> Result {
    let maria = MariaDb::builder().in_memory().durable().start().await?;
    assert!(maria.sql("SELECT @@datadir").await?.starts_with("/dev/shm/"));
    assert_eq!(maria.sql("SELECT @@innodb_flush_log_at_trx_commit").await?, "1");
    maria.stop();
    eventually("the process is stopped", || state_of(maria.pid()) == Some('T')).await;
    let silence = maria.sql("SELECT 1").await.unwrap_err();
    assert!(timed_out(&silence), "{silence}");
    maria.resume();
    assert_eq!(maria.sql("SELECT 1").await?, "1");
    Ok(())
}

#[tokio::test]
async fn counts_what_clients_do() -> Result {
    let maria = MariaDb::start().await?;
    maria.sql("CREATE TABLE t (a INT PRIMARY KEY)").await?;
    let before = maria.counters().await?;
    maria.sql("INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); COMMIT").await?;
    maria.sql("PREPARE s FROM 'SELECT a FROM t'; EXECUTE s; EXECUTE s").await?;
    let after = maria.counters().await?.since(&before);
    let commands: Vec<_> = after.iter().filter(|(key, _)| key.starts_with("cmd.")).collect();
    let expected = [
        ("cmd.begin", 1),
        ("cmd.commit", 1),
        ("cmd.execute_sql", 2),
        ("cmd.insert", 2),
        ("cmd.prepare_sql", 1),
        ("cmd.select", 2),
        ("cmd.stmt_execute", 2),
        ("cmd.stmt_prepare", 1),
    ];
    assert_eq!(commands, expected, "the asking itself is left out");
    Ok(())
}

#[tokio::test]
async fn counts_waiting_statements() -> Result {
    let maria = MariaDb::start().await?;
    maria.sql("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)").await?;
    let hold = "BEGIN; SELECT a FROM t FOR UPDATE; SELECT SLEEP(100)";
    let look = until(|| async {
        let now = maria.counters().await.unwrap();
        now.get("connections") == 2 && now.get("waiting") == 1
    });
    tokio::select! {
        () = look => Ok(()),
        ended = async { tokio::join!(maria.sql(hold), maria.sql(hold)) } => panic!("nobody waited: {ended:?}"),
    }
}
