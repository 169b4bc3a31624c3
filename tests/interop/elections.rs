//! `etcdctl elect` and our elections: there is one leader, and each side sees the other's value.

use distlock::{Leader, Locks, Observer};

use crate::{
    interop::foreign::Foreign,
    support::{connect, eventually, start},
};

async fn queued(locks: &Locks, length: usize) {
    let all = || async { locks.inspect("leader").await.unwrap().len() == length };
    eventually("all are in the queue", all).await;
}

async fn next(observer: &mut Observer) -> Option<Leader> {
    let next = tokio::time::timeout(std::time::Duration::from_secs(20), observer.next()).await;
    next.expect("a change of the leader").expect("it goes on").unwrap()
}

async fn sees(observer: &mut Observer, value: Option<&str>) {
    let seen = next(observer).await.map(|leader| String::from_utf8(leader.value).unwrap());
    assert_eq!(seen.as_deref(), value);
}

#[tokio::test(flavor = "multi_thread")]
async fn elect_waits_for_us_and_takes_over() {
    let server = start("etcd").await;
    let locks = connect(&server.url()).await;
    let election = locks.election("leader").unwrap();
    let mut observer = election.observe().await.unwrap();
    sees(&mut observer, None).await;
    let mut listening = Foreign::etcdctl_listen(server.addr(), "leader");
    let mut leading = election.campaign("ours").await.unwrap();
    sees(&mut observer, Some("ours")).await;
    listening.says("ours").await;
    let mut foreign = Foreign::etcdctl_elect(server.addr(), "leader", "etcdctl's");
    queued(&locks, 2).await;
    leading.proclaim("ours again").await.unwrap();
    listening.says("ours again").await;
    sees(&mut observer, Some("ours again")).await;
    assert!(!foreign.said("etcdctl's"), "etcdctl leads while we do");
    assert!(leading.is_valid());
    leading.resign().await.unwrap();
    foreign.says("etcdctl's").await;
    listening.says("etcdctl's").await;
    sees(&mut observer, Some("etcdctl's")).await;
    assert!(election.try_campaign("ours").await.unwrap().is_none(), "two lead");
    foreign.release().await;
    sees(&mut observer, None).await;
    listening.release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn we_wait_for_elect_and_take_over() {
    let server = start("etcd").await;
    let locks = connect(&server.url()).await;
    let election = locks.election("leader").unwrap();
    let mut foreign = Foreign::etcdctl_elect(server.addr(), "leader", "etcdctl's");
    foreign.says("etcdctl's").await;
    let mut observer = election.observe().await.unwrap();
    sees(&mut observer, Some("etcdctl's")).await;
    let campaign = tokio::spawn(election.campaign("ours"));
    queued(&locks, 2).await;
    assert!(!campaign.is_finished(), "we lead while etcdctl does");
    foreign.release().await;
    let leading = campaign.await.unwrap().unwrap();
    sees(&mut observer, Some("ours")).await;
    leading.resign().await.unwrap();
    sees(&mut observer, None).await;
}
