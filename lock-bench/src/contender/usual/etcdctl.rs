//! `etcdctl lock NAME`: a process that prints its key when it holds the lock, and gives it back at
//! SIGINT.

use std::{process::Stdio, time::Duration};

use async_trait::async_trait;
use distlock::StoreUrl;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    Failure,
    contender::{Asked, Client, Opening, Worker},
};

pub(in crate::contender) fn open(Asked { url, ttl, .. }: Asked) -> Opening {
    Box::pin(async move { Ok(Box::new(Endpoints { url, ttl }) as Box<dyn Client>) })
}

struct Endpoints {
    url: StoreUrl,
    ttl: Duration,
}

#[async_trait]
impl Client for Endpoints {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let url = &self.url;
        let ttl = self.ttl.as_secs().max(1).to_string();
        let name = format!("{}{name}", url.options().text("prefix").unwrap_or_default());
        let mut command = Command::new(lock_lab::etcdctl()?);
        command.env("ETCDCTL_API", "3").arg("--endpoints").arg(url.hosts(2379).join(","));
        if let Some(user) = url.user() {
            let password = url.password().unwrap_or_default();
            // All users of the machine can read arguments.
            command.env("ETCDCTL_USER", format!("{user}:{password}"));
        }
        command.args(["lock", "--ttl", &ttl, &name]).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Box::new(Turns { command, running: None }))
    }
}

struct Turns {
    command: Command,
    running: Option<Child>,
}

#[async_trait]
impl Worker for Turns {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let mut child = self.command.spawn()?;
        let out = child.stdout.as_mut().ok_or("etcdctl has no output")?;
        let mut key = String::new();
        if BufReader::new(out).read_line(&mut key).await? == 0 {
            return Err(format!("etcdctl ended without the lock: {}", child.wait().await?).into());
        }
        self.running = Some(child);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let mut child = self.running.take().ok_or("no etcdctl holds the lock")?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(pid.ok_or("etcdctl has ended")?, Signal::INT)?;
        match child.wait().await? {
            ended if ended.success() => Ok(()),
            ended => Err(format!("etcdctl did not give its lock back: {ended}").into()),
        }
    }
}
