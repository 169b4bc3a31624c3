//! The libraries of Python: redis-py's `Lock`, kazoo's `Lock`. Each worker has a process that takes
//! and gives back as it is told, so a round trip over a pipe is part of each figure.

use std::{
    path::PathBuf,
    process::{self, Stdio},
    time::Duration,
};

use async_trait::async_trait;
use distlock::{LockName, StoreUrl};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    Failure,
    contender::{Asked, Client, Opening, Worker},
};

/// The modules, and the words by which the script knows them.
pub(in crate::contender) const REDIS: &str = "redis";
pub(in crate::contender) const KAZOO: &str = "kazoo";

/// Understands `acquire` and `release`, one per line, after a line with what to connect to.
const SCRIPT: &str = include_str!("python/usual.py");

/// Where an interpreter with the libraries may be: the user's, and the one that `./test` makes.
const PLACES: [&str; 3] = [
    "python3",
    "target/python/bin/python3",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../target/python/bin/python3"),
];

/// Returns an interpreter that has a module.
pub(in crate::contender) fn find(module: &str) -> Result<PathBuf, Failure> {
    let has_it = |program: &PathBuf| {
        let mut command = process::Command::new(program);
        command.args(["-c", &format!("import {module}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|ended| ended.success())
    };
    let found = PLACES.map(PathBuf::from).into_iter().find(has_it);
    Ok(found.ok_or_else(|| format!("no python3 has {module}: python3 -m pip install {module}"))?)
}

pub(in crate::contender) fn open(Asked { url, ttl, .. }: Asked) -> Opening {
    Box::pin(async move {
        let module = if url.scheme() == "zookeeper" { KAZOO } else { REDIS };
        let program = find(module)?;
        Ok(Box::new(Interpreter { program, module, url, ttl }) as Box<dyn Client>)
    })
}

struct Interpreter {
    program: PathBuf,
    module: &'static str,
    url: StoreUrl,
    ttl: Duration,
}

impl Interpreter {
    /// What a process connects to, in one line.
    fn place(&self, name: &str) -> Result<String, Failure> {
        let (url, is_redis) = (&self.url, self.module == REDIS);
        let prefix = url.options().text("prefix");
        let name = match is_redis {
            true => format!("{}{name}", prefix.unwrap_or_default()),
            false => {
                let directory = prefix.unwrap_or("/locks").trim_end_matches('/');
                format!("{directory}/{}", LockName::new(name)?.escaped())
            }
        };
        let place = json!({
            "module": self.module,
            "hosts": url.hosts(if is_redis { 6379 } else { 2181 }),
            "path": url.path(),
            "user": url.user(),
            "password": url.password(),
            "name": name,
            "ttl": self.ttl.as_secs_f64(),
        });
        Ok(format!("{place}\n"))
    }
}

#[async_trait]
impl Client for Interpreter {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["-c", SCRIPT]).stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().ok_or("python3 has no input")?;
        let lines = BufReader::new(child.stdout.take().ok_or("python3 has no output")?).lines();
        // Not as an argument, which all users of the machine can read.
        stdin.write_all(self.place(name)?.as_bytes()).await?;
        let mut process = Process { _child: child, stdin, lines };
        process.hear("ready").await?;
        Ok(Box::new(process))
    }
}

/// It disconnects and ends when its input is closed, which a drop does.
struct Process {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    async fn hear(&mut self, word: &str) -> Result<(), Failure> {
        match self.lines.next_line().await? {
            Some(line) if line == word => Ok(()),
            Some(line) => Err(line.into()),
            None => Err("python3 ended without an answer".into()),
        }
    }
}

#[async_trait]
impl Worker for Process {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        self.stdin.write_all(b"acquire\n").await?;
        self.hear("acquire").await?;
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        self.stdin.write_all(b"release\n").await?;
        self.hear("release").await
    }
}
