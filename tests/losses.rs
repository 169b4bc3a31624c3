//! Losing many locks at once costs no more than losing a few: in a process with a low limit of open
//! files, and for the server after the network is back.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

use std::{
    env,
    io::{BufRead, Write},
    process::Stdio,
    time::Duration,
};

use distlock::{LockGuard, Locks};
use lock_lab::{Counters, Proxy, Server};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinSet,
};

use crate::support::{connect, eventually, size, start};

/// Sessions, connections, logins, one more lock, and all renewals of a few seconds.
const REQUESTS: u64 = 100;
const URL: &str = "DISTLOCK_LOSSES_URL";

/// More than there may be open files.
fn guards() -> u32 {
    size(2_000, 10_000)
}

/// This test program again, in a shell that limits its open files.
struct Loser {
    child: Child,
    tell: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Loser {
    fn start(url: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", r#"ulimit -n 1024; exec "$0" "$@""#])
            .arg(env::current_exe().unwrap())
            .args(["losses::loser", "--exact", "--ignored", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let tell = child.stdin.take().unwrap();
        Self { child, tell, said }
    }

    /// Waits until it prints `what`. Fails the test if it ends before.
    async fn says(&mut self, what: &str) {
        loop {
            let line = self.said.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended before it said {what:?}"));
            println!("| {line}");
            if line == what {
                return;
            }
        }
    }

    async fn go_on(&mut self) {
        self.tell.write_all(b"go on\n").await.unwrap();
    }
}

async fn thousands_of_locks_are_lost_with_few_files_and_few_requests(store: &str) {
    let server = start(store).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let mut loser = Loser::start(&format!("{}?ttl=6s", server.url_via(&proxy)));
    loser.says("held").await;
    // Messages in flight at the cut, such as watches of the newest locks, arrive after the heal.
    settled(store, &server).await;
    proxy.cut();
    loser.says("lost").await;
    let before = server.counters().await.unwrap();
    proxy.heal();
    loser.go_on().await;
    loser.says("acquired").await;
    let since = settled(store, &server).await.since(&before);
    println!("{store}: {} requests after the loss of {} locks", requests(store, &since), guards());
    assert!(requests(store, &since) < REQUESTS, "{since}");
    let others = connect(&server.url()).await;
    eventually("nothing is left", async || others.names("").await.unwrap().is_empty()).await;
    loser.go_on().await;
    assert!(loser.child.wait().await.unwrap().success());
}

/// The counts after only renewals have come for a while: a client of a busy machine pauses, too.
async fn settled(store: &str, server: &Server) -> Counters {
    let mut before = server.counters().await.unwrap();
    let mut quiet = 0;
    while quiet < 3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = server.counters().await.unwrap();
        quiet = if requests(store, &now.since(&before)) < 10 { quiet + 1 } else { 0 };
        before = now;
    }
    before
}

/// Requests of clients, on ZooKeeper with the requests for the counters.
fn requests(store: &str, since: &Counters) -> u64 {
    match store {
        "redis" => since.get("cmd.evalsha") + since.get("cmd.eval"),
        "etcd" => since.iter().filter(|(what, _)| what.starts_with("msg.")).map(|(_, n)| n).sum(),
        _ => since.get("packets_received"),
    }
}

/// The child's part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test starts it"]
async fn loser() {
    let Ok(url) = env::var(URL) else { return };
    let locks = connect(&url).await;
    let guards = hold(&locks).await;
    assert!(guards.iter().all(|guard| guard.is_valid()), "some were lost without a fault");
    say("held");
    for guard in &guards {
        guard.lost().await;
    }
    say("lost");
    listen().await;
    let one = async || match locks.lock("one more").unwrap().acquire().await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(_) => false,
    };
    eventually("it gets a lock again", one).await;
    drop(guards);
    say("acquired");
    listen().await;
}

async fn hold(locks: &Locks) -> Vec<LockGuard> {
    let (mut tasks, mut held) = (JoinSet::new(), Vec::new());
    for n in 0..guards() {
        tasks.spawn(locks.lock(format!("many-{n}")).unwrap().acquire());
        if tasks.len() >= 64 {
            held.extend(tasks.join_next().await.map(|guard| guard.unwrap().unwrap()));
        }
    }
    held.extend(tasks.join_all().await.into_iter().map(Result::unwrap));
    held
}

fn say(what: &str) {
    // Starts a new line: the test harness may have begun one.
    println!("\n{what}");
    std::io::stdout().flush().unwrap();
}

async fn listen() {
    let read = || std::io::stdin().lock().read_line(&mut String::new());
    tokio::task::spawn_blocking(read).await.unwrap().unwrap();
}

on_every_server!(thousands_of_locks_are_lost_with_few_files_and_few_requests);
