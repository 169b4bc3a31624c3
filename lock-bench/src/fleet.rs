//! Processes that play together.

use std::{process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    Failure, Turn,
    child::{JOB, Said},
    job::Job,
};

pub(crate) struct Fleet {
    members: Vec<Member>,
}

struct Member {
    leader: Leader,
    /// Its end ends the process.
    orders: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    /// Memory of each lock that it keeps, in bytes.
    each: u64,
}

/// A process with a group of its own: what it has started for its work dies with it.
struct Leader(Child);

impl Fleet {
    /// Starts the processes, and returns when all have warmed up. A drop kills them.
    pub(crate) async fn start(job: &Job) -> Result<Self, Failure> {
        let parts = (0..job.workload.processes).map(|process| Member::start(&job.part(process)));
        let mut members = parts.collect::<Result<Vec<_>, Failure>>()?;
        for member in &mut members {
            if let Said::Ready(each) = member.hear().await? {
                member.each = each;
            }
        }
        Ok(Self { members })
    }

    /// One round of all: their turns, and the processor time of all.
    pub(crate) async fn round(&mut self) -> Result<(Vec<Turn>, Duration), Failure> {
        for member in &mut self.members {
            member.orders.write_all(b"go\n").await?;
        }
        let (mut turns, mut used) = (Vec::new(), Duration::ZERO);
        for member in &mut self.members {
            if let Said::Played(own, time) = member.hear().await? {
                turns.extend(own);
                used += time;
            }
        }
        Ok((turns, used))
    }

    /// Memory of each lock that is kept, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.members.iter().map(|member| member.each).max().unwrap_or_default()
    }

    /// Kills all with SIGKILL, with the programs that they have started, and waits until they are gone.
    pub(crate) async fn kill(&mut self) -> Result<(), Failure> {
        for member in &mut self.members {
            member.leader.kill();
            member.leader.0.wait().await?;
        }
        Ok(())
    }

    /// Lets all disconnect and end.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        for Member { mut leader, orders, mut said, .. } in self.members {
            drop(orders);
            while let Some(line) = said.next_line().await? {
                read(&line)?;
            }
            leader.0.wait().await?;
        }
        Ok(())
    }
}

impl Leader {
    fn kill(&self) {
        let pid = self.0.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        // The group may have ended by itself.
        let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Member {
    fn start(job: &Job) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(JOB, serde_json::to_string(job)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut leader = Leader(command.spawn()?);
        let orders = leader.0.stdin.take().ok_or("a process without stdin")?;
        let said = leader.0.stdout.take().ok_or("a process without stdout")?;
        Ok(Self { leader, orders, said: BufReader::new(said).lines(), each: 0 })
    }

    async fn hear(&mut self) -> Result<Said, Failure> {
        let line = self.said.next_line().await?;
        read(&line.ok_or("a process of the fleet has ended before its time")?)
    }
}

/// The error is the reason of a process that cannot go on.
fn read(line: &str) -> Result<Said, Failure> {
    match serde_json::from_str(line) {
        Ok(Said::Failed(why)) => Err(why.into()),
        Ok(said) => Ok(said),
        Err(error) => Err(format!("a process of the fleet says {line:?}: {error}").into()),
    }
}
