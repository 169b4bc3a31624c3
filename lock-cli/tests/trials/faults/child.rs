//! The command: a family of processes that write until they are killed.

use std::{
    fs::File,
    io::Write,
    process::{Command, ExitCode},
    time::Duration,
};

use lock_core::{Clock, Instant};

/// The variable that makes this program a member of the family.
pub const ROLE: &str = "DISTLOCK_TEST_ROLE";
/// The variable with the path of their log.
pub const LOG: &str = "DISTLOCK_TEST_LOG";

/// Time between two lines of one process.
const BEAT: Duration = Duration::from_millis(3);

/// The command starts a child, and a process that leaves the session and ignores SIGTERM. Each
/// writes `TOKEN NANOSECONDS PID ROLE` for ever.
#[allow(clippy::zombie_processes, reason = "the family is to be killed, not waited for")]
pub fn play(role: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let _enter = runtime.as_ref().expect("a runtime").enter();
    let mut deaf = None;
    match role {
        "command" => {
            for role in ["child", "deaf"] {
                let this = std::env::current_exe().expect("this program");
                Command::new(this).env(ROLE, role).spawn().expect("a relative");
            }
        }
        "deaf" => {
            rustix::process::setsid().expect("a session of its own");
            let term = tokio::signal::unix::SignalKind::terminate();
            deaf = Some(tokio::signal::unix::signal(term).expect("a handler"));
        }
        _ => {}
    }
    let log = std::env::var_os(LOG).expect("a log");
    let mut log = File::options().append(true).open(log).expect("the log");
    let token = std::env::var("DISTLOCK_TOKEN").expect("a token");
    loop {
        let now = Clock::Boot.now().since(Instant::default()).as_nanos();
        // One write, so that lines stay whole.
        let line = format!("{token} {now} {} {role}\n", std::process::id());
        log.write_all(line.as_bytes()).expect("the log takes it");
        std::thread::sleep(BEAT);
        // The handler lives until here.
        let _ = &deaf;
    }
}
