//! The token floor is raised while requests are under way. Tokens of a name rise with its grants,
//! even if the operator that raises the floor gets no further than the record.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{Error, FencingToken, LockGuard, Locks, LossReason};
use lock_lab::{Lent, Proxy, ZooKeeper};
use lock_zk::client::{Acl, Acls, AuthId, CreateMode, Permission};

use crate::support::*;

/// A client behind a proxy, and two others.
struct Scene {
    server: Lent<ZooKeeper>,
    proxy: Proxy,
    late: Locks,
    other: Locks,
    /// Looks, and raises the floor.
    operator: Locks,
    /// The tokens of the grants, in order.
    granted: Arc<Mutex<Vec<FencingToken>>>,
}

/// When the answer arrives that the proxy holds.
#[derive(Clone, Copy)]
enum Answer {
    Late,
    Never,
}

impl Scene {
    async fn new() -> Self {
        let server = calm_server().await;
        let proxy = proxy(&server).await;
        let late = open_calm_via(&server, &proxy).await;
        let (other, operator) = (open_calm(&server).await, open_calm(&server).await);
        let scene = Self { server, proxy, late, other, operator, granted: Arc::default() };
        // Opens the session of each, and makes the directories.
        for client in [&scene.late, &scene.other, &scene.operator] {
            client.lock("x").unwrap().acquire().await.unwrap().release().await.unwrap();
        }
        keep(&scene.server, "/locks/x").await;
        keep(&scene.server, "/locks/y").await;
        scene
    }

    async fn entries(&self, count: usize) {
        eventually("the entries are there", || async {
            self.operator.inspect("x").await.is_ok_and(|queue| queue.len() == count)
        })
        .await;
    }

    /// Does the first step of a raise, and no more. Returns the floor.
    async fn raise(&self) -> FencingToken {
        let newest = self.operator.token_floor().await.unwrap().newest.value();
        let floor = FencingToken::new(newest + 1_000_000);
        self.operator.driver().raise_token_floor(floor).await.unwrap();
        floor
    }

    /// Raises the floor while `work` has one entry whose creation is not answered, and another
    /// client stands behind it.
    async fn overtake<T: Send + 'static>(
        &self,
        answer: Answer,
        work: impl Future<Output = T> + Send + 'static,
    ) -> (FencingToken, T) {
        let entries = self.operator.inspect("x").await.unwrap().len();
        // Long enough to see the entry before its answer arrives, on most machines. Earlier
        // requests are answered.
        self.proxy.delay(Duration::from_secs(4));
        let work = tokio::spawn(work);
        self.entries(entries + 1).await;
        self.proxy.half_open();
        self.proxy.delay(Duration::ZERO);
        let behind = tokio::spawn(self.passer(&self.other));
        self.entries(entries + 2).await;
        let floor = self.raise().await;
        if let Answer::Never = answer {
            self.proxy.reset();
        }
        self.proxy.heal();
        let done = soon("it is done", work).await.unwrap();
        soon("who came second is done, too", behind).await.unwrap();
        (floor, done)
    }

    /// Takes the lock in a task, and gives it back.
    fn passer(&self, client: &Locks) -> impl Future<Output = ()> + Send + use<> {
        let (lock, granted) = (client.lock("x").unwrap(), self.granted.clone());
        async move { while !pass(lock.acquire().await, &granted).await {} }
    }

    fn granted(&self) -> Vec<FencingToken> {
        self.granted.lock().unwrap().clone()
    }
}

/// Gives a lock back. Returns whether the raise has not ended it, nor the wait for it.
async fn pass(acquired: lock_core::Result<LockGuard>, granted: &Mutex<Vec<FencingToken>>) -> bool {
    match acquired {
        Ok(guard) => {
            granted.lock().unwrap().push(guard.token());
            guard.release().await.inspect_err(|error| assert!(error.is_lost(), "{error}")).is_ok()
        }
        Err(error) => {
            assert!(lost_its_place(&error), "{error}");
            false
        }
    }
}

fn assert_rising(granted: &[FencingToken], floor: FencingToken) {
    assert!(granted.windows(2).all(|two| two[0] < two[1]), "{granted:?}");
    assert!(granted.last() > Some(&floor), "{granted:?}, above {floor}");
}

async fn overtaken(answer: Answer) {
    let scene = Scene::new().await;
    let (floor, ()) = scene.overtake(answer, scene.passer(&scene.late)).await;
    let granted = scene.granted();
    assert_rising(&granted, floor);
    // The client may learn of its entry before it learns of the raise, if that is answered.
    if let Answer::Never = answer {
        assert!(granted.len() == 2 && granted[0] > floor, "{granted:?}, above {floor}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_whose_answer_is_overtaken_goes_behind_later_ones() {
    overtaken(Answer::Late).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_whose_answer_is_lost_goes_behind_later_ones() {
    overtaken(Answer::Never).await;
}

/// A waiter in the same client follows the first entry in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_behind_an_overtaken_entry_of_its_client_gets_the_lock() {
    let scene = Scene::new().await;
    let (first, second) = (scene.passer(&scene.late), scene.passer(&scene.late));
    let work = async move {
        let second = async {
            tokio::task::yield_now().await;
            second.await;
        };
        tokio::join!(first, second);
    };
    scene.proxy.half_open();
    let work = tokio::spawn(work);
    scene.entries(2).await;
    let floor = scene.raise().await;
    scene.proxy.heal();
    soon("both had it", work).await.unwrap();
    assert_rising(&scene.granted(), floor);
}

/// One request makes the nodes of a set, so all of them count from the same floor.
async fn set(answer: Answer) {
    let scene = Scene::new().await;
    let (set, granted) = (scene.late.all(["x", "y"]).unwrap(), scene.granted.clone());
    let work = async move {
        loop {
            let guard = match set.acquire().await {
                Ok(guard) => guard,
                Err(error) => {
                    assert!(lost_its_place(&error), "{error}");
                    continue;
                }
            };
            let tokens = ["x", "y"].map(|name| guard.get(name).unwrap().token());
            granted.lock().unwrap().push(tokens[0]);
            if guard.release().await.is_ok() {
                return tokens;
            }
        }
    };
    let (floor, [x, y]) = scene.overtake(answer, work).await;
    assert_rising(&scene.granted(), floor);
    assert_eq!(x > floor, y > floor, "both count from the same floor");
    assert!(scene.operator.names("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_names_of_a_set_are_entered_anew() {
    set(Answer::Late).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_names_of_a_set_are_entered_anew_after_a_lost_answer() {
    set(Answer::Never).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_overtaken_ends_with_its_grant() {
    let scene = Scene::new().await;
    let mut guard = scene.late.shared("x").unwrap().acquire().await.unwrap();
    scene.granted.lock().unwrap().push(guard.token());
    let work = async move {
        let upgraded = guard.try_upgrade().await;
        // It is upgraded only if it was answered before the floor was raised.
        assert!(
            upgraded.as_ref().is_ok_and(|upgraded| *upgraded)
                || upgraded.is_err_and(|e| e.is_lost())
        );
        (guard.token(), guard.lost().await)
    };
    let (floor, (kept, lost)) = scene.overtake(Answer::Late, work).await;
    assert!(kept < floor && lost == LossReason::EntryGone, "{kept}, {lost:?}");
    assert_rising(&scene.granted(), floor);
}

/// The record alone tells every client that is in reach, whether the raise gets further or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_ends_what_is_older() {
    let scene = Scene::new().await;
    let leads = scene.late.election("x").unwrap().campaign("first").await.unwrap();
    let waits = queue_up(&scene.operator, scene.other.lock("x").unwrap(), "x", 1).await;
    let mut observer = scene.other.election("x").unwrap().observe().await.unwrap();
    let seen = soon("the leader is seen", observer.next()).await.unwrap().unwrap();
    assert_eq!(seen.unwrap().token, leads.token());
    let floor = scene.raise().await;
    assert_eq!(soon("the leader is told", leads.lost()).await, LossReason::EntryGone);
    let told = soon("the waiter is told", waits).await.unwrap().unwrap_err();
    assert!(lost_its_place(&told), "{told}");
    let next = scene.late.election("x").unwrap().campaign("second").await.unwrap();
    assert!(next.token() > floor);
    loop {
        let seen = soon("the next leader is seen", observer.next()).await.unwrap().unwrap();
        if let Some(seen) = seen.filter(|seen| &seen.value[..] == b"second") {
            assert_eq!(seen.token, next.token());
            break;
        }
    }
    // The second step has nothing to end, not even what came between the two.
    scene.operator.raise_token_floor(floor).await.unwrap();
    assert!(next.is_valid() && scene.operator.inspect("x").await.unwrap().len() == 1);
    next.resign().await.unwrap();
}

/// The raise deletes its entries. It learns of the raise before it is told of an entry that it
/// asked for before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_cut_off_during_a_raise_counts_from_the_new_floor() {
    let scene = Scene::new().await;
    let leads = scene.late.election("x").unwrap().campaign("first").await.unwrap();
    scene.proxy.cut();
    // Its request arrives after the raise.
    let acquire = tokio::spawn(scene.late.lock("y").unwrap().acquire());
    let floor = scene.raise().await;
    let shown = scene.operator.inspect("x").await.unwrap();
    assert!(shown[0].holds && shown[0].holder.token.is_none_or(|token| token == leads.token()));
    scene.operator.raise_token_floor(floor).await.unwrap();
    assert!(scene.operator.inspect("x").await.unwrap().is_empty());
    scene.proxy.heal();
    assert_eq!(soon("it is told", leads.lost()).await, LossReason::EntryGone);
    let guard = soon("the lock", acquire).await.unwrap().unwrap();
    assert!(guard.token() > floor, "{}, above {floor}", guard.token());
    guard.release().await.unwrap();
}

/// The answer to the deletion and the news of the raise arrive at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoke_that_was_answered_before_a_raise_says_that_there_was_an_entry() {
    let scene = Scene::new().await;
    let guard = scene.other.lock("x").unwrap().acquire().await.unwrap();
    let attempt = scene.operator.inspect("x").await.unwrap()[0].attempt.unwrap();
    // Long enough to see that the entry is gone before the answer arrives, on most machines.
    scene.proxy.delay(Duration::from_secs(2));
    let late = scene.late.clone();
    let revoke = tokio::spawn(async move { late.revoke("x", attempt).await });
    eventually("the entry is gone", || async {
        scene.operator.inspect("x").await.is_ok_and(|queue| queue.is_empty())
    })
    .await;
    scene.proxy.half_open();
    scene.proxy.delay(Duration::ZERO);
    scene.raise().await;
    scene.proxy.heal();
    assert!(soon("the revoke", revoke).await.unwrap().unwrap());
    assert_eq!(soon("the holder is told", guard.lost()).await, LossReason::EntryGone);
}

/// A name below the floor's node is no lock's.
#[tokio::test]
async fn no_name_hits_the_floors_node() {
    let server = server().await;
    let locks = open(&format!("{}?layout=native", server.url())).await;
    for name in ["%floor", "%floor/x"] {
        let refused = locks.lock(name).unwrap().acquire().await;
        assert!(matches!(refused, Err(Error::InvalidName { .. })), "{name}: {refused:?}");
    }
    let guard = locks.lock("%floors").unwrap().acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// A node that was made for the record, so that no other client makes it, is no record yet.
#[tokio::test]
async fn foreign_data_in_the_floors_node_is_an_error_with_its_path() {
    let server = server().await;
    let (locks, raw) = (open(&server.url()).await, raw(&server).await);
    let (node, open) = ("/locks/%floor", Acls::anyone_all());
    locks.lock("x").unwrap().acquire().await.unwrap().release().await.unwrap();
    let persistent = CreateMode::Persistent.with_acls(open);
    raw.mkdir(&format!("{node}/x"), &persistent).await.unwrap();
    let take = async || Ok::<_, Error>(locks.lock("x")?.acquire().await?.token());
    let newest = take().await.unwrap();
    let refused = locks.raise_token_floor(newest).await.unwrap_err().to_string();
    assert!(refused.contains(node) && refused.contains("children"), "{refused}");
    raw.delete(&format!("{node}/x"), None).await.unwrap();
    raw.delete(node, None).await.unwrap();
    raw.create(node, b"", &persistent).await.unwrap();
    let floor = FencingToken::new(take().await.unwrap().value() + 1_000_000);
    assert_eq!(locks.raise_token_floor(floor).await.unwrap().above, floor);
    assert!(take().await.unwrap() > floor);
    for broken in [&b""[..], b"garbage"] {
        raw.set_data(node, broken, None).await.unwrap();
        let refused = take().await.unwrap_err().to_string();
        assert!(refused.contains(node), "{refused}");
    }
    raw.set_data(node, floor.to_string().as_bytes(), None).await.unwrap();
    assert!(take().await.unwrap() > floor);
}

/// A login that may only read sees the floor, too, and no token that was handed out is above it.
#[tokio::test]
async fn a_login_that_may_only_read_sees_the_floor() {
    let server = server().await;
    let raw = raw(&server).await;
    let reads = [Acl::new(Permission::READ | Permission::ADMIN, AuthId::anyone())];
    raw.set_acl("/", &reads, None).await.unwrap();
    let locks = open(&server.url()).await;
    assert_eq!(locks.token_floor().await.unwrap().above.value(), 0);
    let all = [Acl::new(Permission::ALL, AuthId::anyone())];
    raw.set_acl("/", &all, None).await.unwrap();
    for options in ["", "?layout=native&prefix=/deep/er"] {
        let writes = open(&format!("{}{options}", server.url())).await;
        let prefix = if options.is_empty() { "/locks" } else { "/deep/er" };
        let mut floor = FencingToken::new(0);
        for raised in [false, true] {
            for name in ["a", "b/c", "b"] {
                let guard = writes.lock(name).unwrap().acquire().await.unwrap();
                let token = guard.token();
                raw.set_acl(prefix, &reads, None).await.unwrap();
                let reader = open(&format!("{}{options}", server.url())).await;
                let seen = reader.token_floor().await.unwrap();
                assert!(seen.above == floor && seen.newest >= token, "{seen}, {token}");
                raw.set_acl(prefix, &all, None).await.unwrap();
                guard.release().await.unwrap();
                // The server deletes the directory some time after its last entry.
                let seen = reader.token_floor().await.unwrap();
                assert!(seen.newest >= token, "{seen}, {token}");
            }
            if !raised {
                let newest = writes.token_floor().await.unwrap().newest.value();
                floor = FencingToken::new(newest + 1_000_000);
                writes.raise_token_floor(floor).await.unwrap();
            }
        }
    }
}
