//! A private PostgreSQL.

use lock_lab::{LabError, Postgres, is_gone, state_of};

use crate::{
    is_open,
    support::{eventually, until, until_some},
    timed_out,
};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn answers_as_a_user_of_its_own() -> Result {
    let postgres = Postgres::start().await?;
    let url = postgres.url();
    let (login, place) = url.split_once('@').unwrap();
    assert!(login.starts_with("postgres://lab:") && login.ends_with("%40%3A%2F%25"), "{url}");
    assert_eq!(place, format!("{}/lab", postgres.addr()));
    let who = postgres.sql("SELECT current_user, current_database(), NULL").await?;
    assert_eq!(who, "lab\tlab\tNULL");
    assert_eq!(postgres.sql("SELECT 1; SELECT 'ä'").await?, "1\nä");
    assert!(postgres.log().contains("ready to accept connections"));
    Ok(())
}

#[tokio::test]
async fn the_user_may_do_all_at_home_and_nothing_elsewhere() -> Result {
    let postgres = Postgres::start().await?;
    postgres
        .sql("CREATE TABLE t (a INT); CREATE ROLE guest LOGIN; GRANT SELECT ON t TO guest")
        .await?;
    let error = postgres.sql("SELECT * FROM pg_authid").await.unwrap_err();
    assert!(matches!(&error, LabError::Reply { reply, .. } if reply.contains("denied")), "{error}");
    let secret = postgres.url();
    let secret = secret.split(['/', ':', '%']).nth(4).unwrap();
    assert!(secret.len() == 32 && !format!("{postgres:?}").contains(secret));
    Ok(())
}

#[tokio::test]
async fn two_servers_share_no_data() -> Result {
    let (one, two) = tokio::try_join!(Postgres::start(), Postgres::start())?;
    one.sql("CREATE TABLE t (a INT)").await?;
    two.sql("CREATE TABLE t (a INT)").await?;
    one.sql("INSERT INTO t VALUES (1)").await?;
    assert_eq!(two.sql("SELECT count(*) FROM t").await?, "0");
    Ok(())
}

#[tokio::test]
async fn kill_and_restart_keep_the_data() -> Result {
    let postgres = Postgres::start().await?;
    let (addr, pid, url) = (postgres.addr(), postgres.pid(), postgres.url());
    postgres.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (7)").await?;
    postgres.kill();
    assert!(!is_open(addr));
    assert_eq!(state_of(pid), None, "not even a zombie is left");
    assert!(matches!(postgres.sql("SELECT 1").await, Err(LabError::Io { .. })));
    postgres.restart().await?;
    assert_eq!((postgres.addr(), postgres.url(), postgres.pid() == pid), (addr, url, false));
    assert_eq!(postgres.sql("SELECT a FROM t").await?, "7");
    postgres.restart().await?; // also while it runs
    assert_eq!(postgres.sql("SELECT a FROM t").await?, "7");
    Ok(())
}

#[tokio::test]
async fn a_kill_ends_each_of_its_processes() -> Result {
    let postgres = Postgres::start().await?;
    for _ in 0..3 {
        let busy = postgres.sql("SELECT pg_sleep(100)");
        let workers = until_some(|| async {
            let asked =
                postgres.sql("SELECT pid FROM pg_stat_activity WHERE query ~ '^SELECT pg_sl'");
            let sleeper = asked.await.unwrap();
            let all = postgres.sql("SELECT pid FROM pg_stat_activity").await.unwrap();
            (!sleeper.is_empty()).then_some(all)
        });
        let workers = tokio::select! {
            workers = workers => workers,
            ended = busy => panic!("it has slept: {ended:?}"),
        };
        let workers: Vec<u32> = workers.lines().map(|pid| pid.parse().unwrap()).collect();
        assert!(workers.len() > 3, "{workers:?}");
        postgres.kill();
        let left: Vec<_> = workers.iter().map(|pid| (pid, state_of(*pid))).collect();
        assert!(workers.iter().all(|pid| is_gone(*pid)), "at once: {left:?}");
        postgres.restart().await?;
    }
    Ok(())
}

#[tokio::test]
async fn stop_stops_each_of_its_processes() -> Result {
    let postgres = Postgres::builder().in_memory().durable().start().await?;
    assert_eq!(postgres.sql("SHOW fsync").await?, "on");
    // If only the first process was stopped, another connection would go on to work.
    let asked =
        "SELECT pg_sleep(0.2), pid FROM pg_stat_activity WHERE backend_type <> 'client backend'";
    let pids = postgres.sql(asked).await?;
    let pids: Vec<u32> = pids.lines().filter_map(|line| line.trim().parse().ok()).collect();
    assert!(pids.len() > 3, "{pids:?}");
    postgres.stop();
    let all = || pids.iter().copied().chain([postgres.pid()]);
    eventually("all are stopped", || all().all(|pid| state_of(pid) == Some('T'))).await;
    let silence = postgres.sql("SELECT 1").await.unwrap_err();
    assert!(timed_out(&silence), "{silence}");
    postgres.resume();
    eventually("none is stopped", || all().all(|pid| state_of(pid) != Some('T'))).await;
    assert_eq!(postgres.sql("SELECT 1").await?, "1");
    postgres.stop();
    postgres.restart().await?;
    assert_eq!(postgres.sql("SELECT 1").await?, "1");
    Ok(())
}

/// The segments of System V shared memory outlive processes, unless they are marked.
#[tokio::test]
async fn leaves_no_shared_memory() -> Result {
    let segments_of = |pid: u32| {
        let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
        let pid = pid.to_string();
        all.lines().filter(|line| line.split_whitespace().nth(4) == Some(&pid)).count()
    };
    let postgres = Postgres::start().await?;
    let first = postgres.pid();
    assert_eq!(segments_of(first), 1);
    postgres.restart().await?;
    let second = postgres.pid();
    assert_eq!((segments_of(first), segments_of(second)), (0, 1));
    drop(postgres);
    assert_eq!(segments_of(second), 0);
    Ok(())
}

#[tokio::test]
async fn counts_what_clients_do() -> Result {
    let postgres = Postgres::start().await?;
    postgres.sql("CREATE TABLE t (a INT PRIMARY KEY)").await?;
    let before = postgres.counters().await?;
    postgres.sql("INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); COMMIT").await?;
    postgres.sql("/* why */ SELECT a FROM t WHERE a = 1; select 2").await?;
    postgres
        .sql("PREPARE p (INT) AS INSERT INTO t VALUES ($1); EXECUTE p(3); EXECUTE p(4)")
        .await?;
    let after = postgres.counters().await?.since(&before);
    let commands: Vec<_> = after.iter().filter(|(key, _)| key.starts_with("cmd.")).collect();
    let expected = [("cmd.begin", 1), ("cmd.commit", 1), ("cmd.insert", 4), ("cmd.select", 2)];
    assert_eq!(commands, expected, "the asking itself is left out");
    Ok(())
}

#[tokio::test]
async fn counts_waiting_statements() -> Result {
    let postgres = Postgres::start().await?;
    postgres.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)").await?;
    let hold =
        "SET application_name = 'app'; BEGIN; SELECT a FROM t FOR UPDATE; SELECT pg_sleep(100)";
    let look = until(|| async {
        let now = postgres.counters().await.unwrap();
        now.get("connections") == 2 && now.get("waiting") == 1
    });
    tokio::select! {
        () = look => Ok(()),
        ended = async { tokio::join!(postgres.sql(hold), postgres.sql(hold)) } => panic!("nobody waited: {ended:?}"),
    }
}
