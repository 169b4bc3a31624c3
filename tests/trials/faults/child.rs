//! The holder: a process that works under a lock and prints its events on stdout.

use std::{
    env,
    io::Write,
    process::{self, Command, ExitCode},
    time::Duration,
};

use distlock::{Error, Locks};
use lock_core::{Clock, Instant};

/// Variable that makes this program a holder. It contains the store's URL.
pub const URL: &str = "DISTLOCK_TEST_HOLDER_URL";

/// Variable that makes the holder stop itself (SIGSTOP) at the end of its first poll. A stop from
/// outside might fall between the check of the clock and the poll that it permits.
pub const STOPS: &str = "DISTLOCK_TEST_HOLDER_STOPS";

/// The name of the lock.
pub const NAME: &str = "faults/holder";

/// Time for which the lock outlives its last renewal.
pub const TTL: Duration = Duration::from_secs(4);

/// Holds the lock until it is lost. Prints `held TOKEN`, then `work VALID` at each poll of the
/// work, then `end VALID LOST RESULT` as the first thing after the loss and `at NANOSECONDS` on the
/// boot clock, then `write TOKEN`: a late write. After a signal that asks it to end, it gives the
/// lock back and prints `closed`.
pub fn hold(url: &str) -> ExitCode {
    // One thread: a stop halts everything, as in most programs.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(work_until_told(url)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("failed {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn work_until_told(url: &str) -> distlock::Result<()> {
    let locks = distlock::connect(url).await?;
    match locks.close_on_signal(work(&locks)).await? {
        Some(done) => done,
        None => {
            say(format_args!("closed"));
            Ok(())
        }
    }
}

async fn work(locks: &Locks) -> distlock::Result<()> {
    let (seen, held) = tokio::sync::oneshot::channel();
    let lock = locks.lock(NAME)?.ttl(TTL);
    let mut stops = env::var_os(STOPS);
    let lost = lock
        .run(|held| async move {
            say(format_args!("held {}", held.token()));
            // The receiver lives in this function.
            let _ = seen.send(held.clone());
            loop {
                say(format_args!("work {}", held.is_valid()));
                if stops.take().is_some() {
                    signal(process::id(), "-STOP");
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    let (held, lost): (_, distlock::Result<()>) = (held.await.expect("the lock was held"), lost);
    let now = boot_nanos();
    let is_loss = matches!(lost, Err(Error::Lost { .. }));
    say(format_args!("end {} {is_loss} {lost:?}", held.is_valid()));
    say(format_args!("at {now}"));
    say(format_args!("write {}", held.token()));
    Ok(())
}

/// The machine's boot clock, which is the same in all processes.
pub fn boot_nanos() -> u128 {
    Clock::Boot.now().since(Instant::default()).as_nanos()
}

pub fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.expect("kill").success());
}

fn say(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    // If the parent is gone, the write fails.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
