//! Holders that are stopped for longer than their TTL, each with a transaction open.

use std::{
    env,
    io::BufReader,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use lock_core::{LockGuard, Locks};
use lock_lab::{size, state_of};
use lock_sql::{CommitHeld, Dialect};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    servers::{Database, eventually, locks, on_both},
    support::{
        program::Program,
        said::{self, say, until_told},
    },
};

on_both!(no_stopped_holder_commits_late);

const URL: &str = "LOCK_SQL_TEST_LATE_URL";
/// Has the holders commit without a look at their locks.
const PLAINLY: &str = "LOCK_SQL_TEST_LATE_PLAINLY";
const TTL: Duration = Duration::from_secs(1);
/// Each commits twice in a round: at once, and late.
const HOLDERS: u32 = 50;

/// What the program's table has for a commit at once and for a late one.
const SOON: i64 = 1;
const LATE: i64 = 2;

/// All holders: a process.
struct Holders {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Holders {
    fn start(url: &str, plainly: bool) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "servers::late::hold", "--nocapture", "--test-threads=1"]);
        command.env(URL, url).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if plainly {
            command.env(PLAINLY, "yes");
        }
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    /// Lets the process go on to its next word.
    fn go(&mut self) {
        said::go(self.process.stdin.as_mut().unwrap());
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn says(&mut self) -> String {
        said::says(&mut self.lines)
    }

    /// Lets a round begin, and stops the process when all transactions are open.
    async fn begin(&mut self) {
        self.go();
        assert_eq!(self.says(), "open");
        self.signal(Signal::STOP);
        let pid = self.process.id();
        eventually("the holders stop", async || state_of(pid) == Some('T')).await;
    }

    /// Lets the process commit. Returns how many commits at once and late ones it has made.
    fn resume(&mut self) -> [u32; 2] {
        self.go();
        self.signal(Signal::CONT);
        let said = self.says();
        let (soon, late) = said.split_once(' ').unwrap();
        [soon, late].map(|count| count.parse().unwrap())
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The part of the other process. Without a URL it does nothing: then it is one of the tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hold() {
    let Ok(url) = env::var(URL) else { return };
    let (locks, program) = (locks(&url).await, Program::connect(&url, HOLDERS).await);
    let plainly = env::var_os(PLAINLY).is_some();
    while until_told() {
        let [soon, late] = round(&locks, &program, plainly).await;
        say(format_args!("{soon} {late}"));
    }
}

/// The process is stopped when all transactions are open. Returns the numbers of commits.
async fn round(locks: &Locks, program: &Program, plainly: bool) -> [u32; 2] {
    let (mut open, mut soon, mut late) = (Vec::new(), 0, 0);
    for guard in take_all(locks).await {
        soon += u32::from(program.insert(SOON, &guard, async {}).await.is_ok());
        open.push((program.open(LATE).await, guard));
    }
    say(format_args!("open"));
    until_told();
    for (open, guard) in open {
        let committed = match plainly {
            true => {
                open.commit().await;
                true
            }
            false => guard.commit(open).await.is_ok(),
        };
        late += u32::from(committed);
    }
    [soon, late]
}

async fn take_all(locks: &Locks) -> Vec<LockGuard> {
    let mut held = Vec::new();
    for n in 0..HOLDERS {
        let lock = locks.lock(format!("late/{n}")).unwrap().ttl(TTL);
        held.push(lock.acquire().await.unwrap());
    }
    held
}

/// Plays rounds. Returns how many commits at once and late ones there were. The commits of a round
/// are late that come after all of its locks were granted to this process.
async fn play(server: &Database, rounds: usize, plainly: bool) -> [u32; 2] {
    server.sql("DROP TABLE IF EXISTS numbers; CREATE TABLE numbers (n bigint)").await;
    let count = async |number: i64| {
        let count = format!("SELECT count(*) FROM numbers WHERE n = {number}");
        server.sql(&count).await.trim().parse::<u32>().unwrap()
    };
    let next = locks(&server.url()).await;
    let mut holders = Holders::start(&server.url(), plainly);
    let mut all = [0, 0];
    for _ in 0..rounds {
        holders.begin().await;
        let mut granted = Vec::new();
        for n in 0..HOLDERS {
            granted.push(next.lock(format!("late/{n}")).unwrap().acquire().await.unwrap());
        }
        assert_eq!(count(LATE).await, all[1], "nobody commits while the holders are stopped");
        let [soon, late] = holders.resume();
        all = [all[0] + soon, all[1] + late];
        assert_eq!([count(SOON).await, count(LATE).await], all, "what they say is what they did");
        for guard in granted {
            guard.release().await.unwrap();
        }
    }
    all
}

async fn no_stopped_holder_commits_late(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let [soon, late] = play(&server, size(1, 100), false).await;
    println!("with the check {soon} commits in time, {late} late ones");
    assert!(soon > 0, "those that hold their lock commit");
    assert_eq!(late, 0);
    let [_, late] = play(&server, 1, true).await;
    assert_eq!(late, HOLDERS, "without the check all are late");
}
