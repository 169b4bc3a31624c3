//! Other processes: this test binary again, which then plays one part.

use std::{
    env,
    io::BufReader,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use lock_core::Error;

use crate::{
    file::{connect, locks},
    support::said::{self, say, until_told},
};

const PART: &str = "LOCK_SQL_TEST_PART";
const ARGUMENT: &str = "LOCK_SQL_TEST_ARGUMENT";

/// Another process, its lines, and its orders.
pub struct Other {
    pub process: Child,
    orders: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

/// Starts a process that plays a part. `change` runs it as another user, or takes its environment.
pub fn start(part: &str, argument: &str, change: impl FnOnce(&mut Command)) -> Other {
    let mut command = Command::new(env::current_exe().unwrap());
    change(&mut command);
    play_by(command, part, argument)
}

/// Starts a process that plays a part with mounts of its own, which a line of the shell makes.
pub fn start_behind(mount: &str, part: &str, argument: &str) -> Other {
    // A user that is not root becomes the root of a namespace.
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg(format!("{mount} && exec \"$@\"")).arg("sh").arg(env::current_exe().unwrap());
    play_by(command, part, argument)
}

fn play_by(mut command: Command, part: &str, argument: &str) -> Other {
    command.args(["--exact", "file::child::play", "--nocapture", "--test-threads=1"]);
    command.env(PART, part).env(ARGUMENT, argument);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let (orders, lines) = (process.stdin.take(), process.stdout.take().unwrap());
    Other { process, orders, lines: BufReader::new(lines) }
}

impl Other {
    /// Returns the next word of the process.
    pub fn says(&mut self) -> String {
        said::says(&mut self.lines)
    }

    /// Lets the process go on.
    pub fn go(&mut self) {
        said::go(self.orders.as_mut().unwrap());
    }

    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits for its end, which must be a success.
    pub fn ends(mut self) {
        drop(self.orders.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The part of the other process. Without a part it does nothing: then it is one of the tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn play() {
    let (Ok(part), Ok(argument)) = (env::var(PART), env::var(ARGUMENT)) else { return };
    match part.as_str() {
        "count" => count(Path::new(&argument)).await,
        "hurry" => hurry(Path::new(&argument)).await,
        "hold" => hold(&argument).await,
        "try" => try_it(&argument).await,
        "fill" => fill(Path::new(&argument)).await,
        "open" => match connect(&argument).await {
            Ok(driver) => say(driver.path().unwrap().display()),
            Err(error) => say(error),
        },
        other => panic!("no part {other}"),
    }
}

/// Adds to a number in a file that only the lock protects.
async fn count(directory: &Path) {
    let locks = locks(&directory.join("locks.db")).await;
    let counter = directory.join("counter");
    for _ in 0..50 {
        let guard = locks.lock("counter").unwrap().acquire().await.unwrap();
        let number: u64 = std::fs::read_to_string(&counter).unwrap().parse().unwrap();
        std::fs::write(&counter, (number + 1).to_string()).unwrap();
        guard.release().await.unwrap();
    }
}

/// Takes locks and gives them back as fast as it can, and says their tokens, until it is killed.
async fn hurry(path: &Path) {
    let locks = locks(path).await;
    let lock = locks.lock("hurry").unwrap().ttl(Duration::from_secs(1));
    loop {
        let guard = lock.acquire().await.unwrap();
        say(guard.token());
        match guard.release().await {
            // The process had no processor for a TTL.
            Ok(()) | Err(Error::Lost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

async fn hold(url: &str) {
    let locks = lock_core::Locks::new(connect(url).await.unwrap());
    let guard = locks.lock("shared").unwrap().acquire().await.unwrap();
    say(guard.token());
    until_told();
    guard.release().await.unwrap();
    say("released");
    until_told();
}

/// Tries on a disk that it has filled, and again when there is room.
async fn fill(folder: &Path) {
    let (locks, filler) = (locks(&folder.join("locks.db")).await, folder.join("filler"));
    let lock = locks.lock("a").unwrap().ttl(Duration::from_secs(2));
    lock.acquire().await.unwrap().release().await.unwrap();
    // Until there is no room.
    std::fs::write(&filler, vec![0; 1 << 24]).unwrap_err();
    say(lock.acquire().await.unwrap_err());
    std::fs::remove_file(filler).unwrap();
    say(lock.acquire().await.unwrap().token());
}

/// Tries once, and again for each order.
async fn try_it(url: &str) {
    let locks = lock_core::Locks::new(connect(url).await.unwrap());
    loop {
        match locks.lock("shared").unwrap().try_acquire().await.unwrap() {
            Some(guard) => {
                let token = guard.token();
                guard.release().await.unwrap();
                say(token);
            }
            None => say("busy"),
        }
        if !until_told() {
            return;
        }
    }
}
