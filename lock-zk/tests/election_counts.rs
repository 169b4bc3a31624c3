//! The costs of an election, counted by the server.

use lock_core::{Leadership, Observer};
use lock_lab::ZooKeeper;

use crate::support::*;

const MANY: usize = 10;
/// Each client watches the token floor: the leader, and the others.
const FLOORS: u64 = 1 + MANY as u64;

async fn watches(server: &ZooKeeper, count: u64) {
    let there = || async { server.counters().await.unwrap().get("watches") == count };
    eventually("all that are expected watch", there).await;
}

#[tokio::test]
async fn campaign_and_resign_are_three_requests() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    keep(&server, "/locks/lead").await;
    let election = locks.election("lead").unwrap();
    let lead = || async { election.campaign("x").await.unwrap().resign().await.unwrap() };
    assert_eq!(packets(&server, lead).await, 3);
    // A sync, a list, the node with a watch, and the end of the watch.
    let _leading = election.campaign("x").await.unwrap();
    let look = || async { assert!(election.leader().await.unwrap().is_some()) };
    let least = packets(&server, look).await;
    assert!(least <= 4, "{least} packets to see who leads");
}

/// One request, with any number of candidates: they are told of their turn, not of the leader's
/// values.
#[tokio::test]
async fn a_proclamation_wakes_no_candidate() {
    let server = calm_server().await;
    let here = open_calm(&server).await;
    let mut leading = here.election("crowd").unwrap().campaign("0").await.unwrap();
    let (mut candidates, mut clients) = (Vec::new(), Vec::new());
    for position in 1..=MANY {
        let there = open_calm(&server).await;
        let lock = there.lock("crowd").unwrap();
        candidates.push(queue_up(&here, lock, "crowd", position).await);
        clients.push(there);
    }
    // The own nodes, the node before, and the token floor by each client.
    watches(&server, 1 + 2 * MANY as u64 + FLOORS).await;
    let mut least = u64::MAX;
    for n in 0..5 {
        let (used, said) = cost(&server, leading.proclaim(n.to_string())).await;
        said.unwrap();
        assert_eq!((used.get("fired.changed"), used.get("requests.update")), (0, 1), "{used}");
        least = least.min(used.get("packets_received") - 1);
    }
    assert_eq!(least, 1);
    candidates.iter().for_each(|candidate| candidate.abort());
}

async fn proclaim(leading: &mut Leadership, observers: &mut [Observer], value: &str) {
    leading.proclaim(value).await.unwrap();
    tell(observers, Some(value)).await;
}

async fn tell(observers: &mut [Observer], value: Option<&str>) {
    for observer in observers {
        let leader = soon("a change", observer.next()).await.unwrap().unwrap();
        assert_eq!(leader.map(|leader| leader.value).as_deref(), value.map(str::as_bytes));
    }
}

/// One event and one read for each observer when the leader says something; two requests when the
/// leader changes.
#[tokio::test]
async fn a_change_costs_each_observer_one_or_two_reads() {
    let server = calm_server().await;
    let here = open_calm(&server).await;
    keep(&server, "/locks/seen").await;
    let election = here.election("seen").unwrap();
    let mut leading = election.campaign("0").await.unwrap();
    let (mut observers, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..MANY {
        let there = open_calm(&server).await;
        observers.push(there.election("seen").unwrap().observe().await.unwrap());
        clients.push(there);
    }
    tell(&mut observers, Some("0")).await;
    let many = MANY as u64;
    let mut least = [u64::MAX; 3];
    for round in 1..6 {
        watches(&server, 1 + many + FLOORS).await;
        let value = round.to_string();
        let (used, ()) = cost(&server, proclaim(&mut leading, &mut observers, &value)).await;
        assert_eq!((used.get("fired.changed"), used.get("requests.update")), (many, 1), "{used}");
        least[0] = least[0].min(used.get("packets_received") - 1);
        watches(&server, 1 + many + FLOORS).await;
        let (used, ()) = cost(&server, async {
            leading.resign().await.unwrap();
            tell(&mut observers, None).await;
        })
        .await;
        assert_eq!(used.get("fired.deleted"), 1 + many, "{used}");
        least[1] = least[1].min(used.get("packets_received") - 1);
        watches(&server, many + FLOORS).await;
        let (used, again) = cost(&server, async {
            let leading = election.campaign(&value).await.unwrap();
            tell(&mut observers, Some(&value)).await;
            leading
        })
        .await;
        assert_eq!(used.get("fired.children"), many, "{used}");
        least[2] = least[2].min(used.get("packets_received") - 1);
        leading = again;
    }
    println!("with {MANY} observers: proclaim, resign, campaign {least:?}");
    assert_eq!(least[0], 1 + many);
    assert_eq!(least[1], 1 + 2 * many);
    assert_eq!(least[2], 2 + 2 * many);
}
