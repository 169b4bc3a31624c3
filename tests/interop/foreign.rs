//! A foreign client as a process. It prints its events on stdout, and gives the lock back when its
//! stdin is closed (etcdctl: at SIGINT).
#![allow(dead_code, reason = "each store has its own client")]

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::support::eventually;

pub struct Foreign {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Foreign {
    /// `etcdctl lock NAME`: prints its key when it holds the lock.
    pub fn etcdctl(server: SocketAddr, name: &str) -> Self {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={server}"));
        Self::start(command.args(["lock", name]), |line| match line.contains('/') {
            true => "held".to_owned(),
            false => line,
        })
    }

    /// `etcdctl elect NAME VALUE`: prints its key and its value when it leads.
    pub fn etcdctl_elect(server: SocketAddr, name: &str, value: &str) -> Self {
        Self::elect(server, &[name, value])
    }

    /// `etcdctl elect --listen NAME`: prints key and value of each leader, but no vacancy.
    pub fn etcdctl_listen(server: SocketAddr, name: &str) -> Self {
        Self::elect(server, &["--listen", name])
    }

    fn elect(server: SocketAddr, arguments: &[&str]) -> Self {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={server}")).arg("elect");
        Self::start(command.args(arguments), |line| line)
    }

    /// kazoo's `Lock(path)`, with `extra_lock_patterns` unless the pattern is empty.
    pub fn kazoo(server: SocketAddr, path: &str, pattern: &str) -> Self {
        Self::python("kazoo_lock.py", &[&server.to_string(), path, pattern])
    }

    /// redis-py's `Lock(name)`.
    pub fn redis_py(server: SocketAddr, name: &str) -> Self {
        Self::python("redis_lock.py", &[&server.port().to_string(), name])
    }

    fn python(script: &str, arguments: &[&str]) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let private = here.with_file_name("target/python/bin/python3");
        let python = std::env::var_os("DISTLOCK_TEST_PYTHON").map_or(private, PathBuf::from);
        assert!(python.exists(), "no {}; run ./test, which makes it", python.display());
        let mut command = Command::new(python);
        Self::start(command.arg(here.join("interop").join(script)).args(arguments), |line| line)
    }

    fn start(command: &mut Command, read: fn(String) -> String) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{:?}: {error}; run ./test, which installs it", command.as_std().get_program())
        });
        let mut out = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = out.next_line().await {
                sink.lock().unwrap().push(read(line));
            }
        });
        Self { child, lines }
    }

    /// Records an event that the client does not print itself.
    pub fn say(&self, word: &str) {
        self.lines.lock().unwrap().push(word.to_owned());
    }

    pub fn said(&self, word: &str) -> bool {
        self.lines.lock().unwrap().iter().any(|line| line == word)
    }

    /// Waits until the client prints `word`.
    pub async fn says(&mut self, word: &str) {
        let lines = self.lines.clone();
        let said = || async { lines.lock().unwrap().iter().any(|line| line == word) };
        eventually(&format!("the foreign client says {word:?}"), said).await;
    }

    /// Makes the client give the lock back and end, and waits for that.
    pub async fn release(&mut self) {
        drop(self.child.stdin.take());
        let pid = self.child.id().expect("the foreign client runs").to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.expect("kill").success());
        let ended =
            tokio::time::timeout(std::time::Duration::from_secs(20), self.child.wait()).await;
        ended.expect("the foreign client ends").expect("its exit code");
    }
}
