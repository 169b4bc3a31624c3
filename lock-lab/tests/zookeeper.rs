//! A private ZooKeeper.

use std::process::Command;

use lock_lab::{ZooKeeper, state_of};

use crate::{
    is_open,
    support::{PATIENCE, eventually},
};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// Runs one command of ZooKeeper's own client and returns its output.
fn client(zookeeper: &ZooKeeper, command: &[&str]) -> std::io::Result<String> {
    let output = Command::new("java")
        .args([
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-cp",
            "/usr/share/java/zookeeper.jar",
        ])
        .args(["org.apache.zookeeper.ZooKeeperMain", "-server", &zookeeper.addr().to_string()])
        .args(command)
        .output()?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[tokio::test]
async fn answers_with_the_tick_that_was_asked_for() -> Result {
    let zookeeper = ZooKeeper::builder()
        .tick(std::time::Duration::from_millis(250))
        .in_memory()
        .start()
        .await?;
    assert_eq!(zookeeper.url(), format!("zookeeper://{}", zookeeper.addr()));
    let settings = zookeeper.four_letter("conf").await?;
    assert!(settings.contains("minSessionTimeout=500\n"), "{settings}");
    assert!(settings.contains("maxSessionTimeout=5000\n"), "{settings}");
    assert!(settings.contains("/dev/shm/"), "{settings}");
    Ok(())
}

#[tokio::test]
async fn restart_keeps_the_data_and_containers_go_away() -> Result {
    let zookeeper = ZooKeeper::start().await?;
    let (addr, pid) = (zookeeper.addr(), zookeeper.pid());
    let empty = zookeeper.counters().await?;
    assert!(client(&zookeeper, &["create", "/kept", "v"])?.contains("Created /kept"));
    assert!(client(&zookeeper, &["create", "-c", "/box", "v"])?.contains("Created /box"));
    assert!(client(&zookeeper, &["create", "/box/child", "v"])?.contains("Created /box/child"));
    let after = zookeeper.counters().await?.since(&empty);
    assert_eq!(after.get("znodes"), 3, "{after}");
    assert!(after.get("requests.update") >= 3, "{after}");
    assert_eq!(after.get("connections_total"), 3, "{after}");

    zookeeper.kill();
    assert!(!is_open(addr));
    zookeeper.restart().await?;
    assert_eq!((zookeeper.addr(), zookeeper.pid() == pid), (addr, false));
    assert_eq!(zookeeper.counters().await?.get("znodes"), empty.get("znodes") + 3);

    client(&zookeeper, &["delete", "/box/child"])?;
    let collected = async {
        while zookeeper.counters().await?.get("znodes") != empty.get("znodes") + 1 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Ok::<_, lock_lab::LabError>(())
    };
    tokio::time::timeout(PATIENCE, collected).await??;
    Ok(())
}

#[tokio::test]
async fn stops_and_resumes() -> Result {
    let zookeeper = ZooKeeper::start().await?;
    zookeeper.stop();
    eventually("the process is stopped", || state_of(zookeeper.pid()) == Some('T')).await;
    assert!(zookeeper.four_letter("ruok").await.is_err());
    zookeeper.resume();
    assert_eq!(zookeeper.four_letter("ruok").await?, "imok");
    Ok(())
}
