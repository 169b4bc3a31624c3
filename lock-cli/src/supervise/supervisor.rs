//! The supervisor: it owns the command, and ends it before another client can have the lock.

use std::{
    collections::HashSet,
    ffi::{CStr, OsString},
    io,
    os::unix::net::UnixStream,
    process::ExitCode,
    time::Duration,
};

use lock_core::{Clock, Instant};
use rustix::process::{Pid, Signal, WaitStatus, getpid, kill_process_group, set_child_subreaper};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::unix::OwnedReadHalf,
    signal::unix::{SignalKind, signal},
};

use super::{
    family,
    fork::{Side, fork},
    launcher::{LAUNCH, launch},
    message::{Begin, End, Environment, News, Order, code},
    outbox::Outbox,
};
use crate::{exit::Failure, on_lost::Policy, runtime, signals::Signals};

/// The name of a supervisor.
pub(super) const SUPERVISE: &CStr = c"supervise";
/// Time between two looks whether the processes that the command left running have ended.
const LOOK: Duration = Duration::from_millis(10);

/// Starts the command when the holder says so, and stays until none of its processes is left. The
/// socket `leash` is the holder's. Other users see the command as `shown`, without its passwords.
pub(super) fn supervise(
    leash: UnixStream,
    command: &[OsString],
    shown: &[OsString],
) -> Result<ExitCode, Failure> {
    let failed = || Failure::system("supervising");
    set_child_subreaper(Some(getpid())).map_err(io::Error::from).map_err(failed())?;
    let (launcher, socket) = match fork(LAUNCH, shown).map_err(failed())? {
        Side::Parent(launcher, socket) => (launcher, socket),
        Side::Child(socket) => {
            // The holder hears the supervisor's end when no process has this socket any more.
            drop(leash);
            return launch(socket, command);
        }
    };
    let work = async { Supervisor::new(leash, launcher, socket)?.watch().await };
    runtime()?.block_on(work).map_err(failed())?;
    Ok(ExitCode::SUCCESS)
}

struct Supervisor {
    orders: Option<Lines<BufReader<OwnedReadHalf>>>,
    news: Outbox<News>,
    /// The launcher, while it waits for the order to begin.
    launcher: Option<UnixStream>,
    /// The command, and its process group.
    command: Pid,
    policy: Policy,
    until: Instant,
    /// Since when the command must end, at any deadline: it has ended, or the holder has.
    stopping: Option<Instant>,
    asked: bool,
    end: Option<WaitStatus>,
}

/// The next step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Look,
    Ask,
    Kill,
}

impl Supervisor {
    fn new(leash: UnixStream, command: Pid, launcher: UnixStream) -> io::Result<Self> {
        leash.set_nonblocking(true)?;
        let (orders, news) = tokio::net::UnixStream::from_std(leash)?.into_split();
        Ok(Self {
            orders: Some(BufReader::new(orders).lines()),
            news: Outbox::new(news),
            launcher: Some(launcher),
            command,
            policy: Policy { grace: Duration::ZERO, ignore: false },
            until: Instant::NEVER,
            stopping: None,
            asked: false,
            end: None,
        })
    }

    async fn watch(mut self) -> io::Result<()> {
        // A signal to all processes, as from systemd, is for the command; the holder gets it, too.
        let _unheard = Signals::listen()?;
        let mut children = signal(SignalKind::child())?;
        self.news.post(News::Started(self.command));
        loop {
            let alone = self.reap();
            if let (Some(status), true) = (self.end, alone) {
                self.finish(End { code: code(status), left: 0 }).await;
                return Ok(());
            }
            let (step, when) = self.next();
            tokio::select! {
                biased;
                order = next_order(&mut self.orders) => self.obey(order),
                _ = children.recv() => {}
                () = self.news.flush(), if !self.news.is_empty() => {}
                () = Clock::Boot.sleep_until(when) => match step {
                    Step::Look => {}
                    Step::Ask => self.ask(),
                    Step::Kill => {
                        self.kill().await;
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The next step, and its time.
    fn next(&self) -> (Step, Instant) {
        let lost = if self.policy.ignore { Instant::NEVER } else { self.until };
        let stop = self.stopping;
        let kill = stop.map_or(lost, |since| lost.min(since + self.policy.grace));
        let ask = match self.asked {
            true => Instant::NEVER,
            false => stop.unwrap_or(Instant::NEVER).min(before(lost, self.policy.grace)),
        };
        let look = match self.end {
            Some(_) => Clock::Boot.now() + LOOK,
            None => Instant::NEVER,
        };
        let steps = [(Step::Kill, kill), (Step::Ask, ask), (Step::Look, look)];
        steps.into_iter().min_by_key(|(_, when)| *when).unwrap_or((Step::Kill, kill))
    }

    fn obey(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Until(until)) => self.until = until,
            Some(Order::Begin(Begin { policy, environment })) => {
                self.policy = policy;
                if !policy.ignore && self.until <= Clock::Boot.now() {
                    self.launcher = None;
                    self.news.post(News::Late);
                }
                if let Some(launcher) = self.launcher.take() {
                    // A launcher that is gone is reaped. A stopped one may not read it.
                    tokio::spawn(begin(launcher, environment));
                }
            }
            Some(Order::Signal(signal)) => {
                let _ = kill_process_group(self.command, signal);
                if matches!(signal, Signal::TERM | Signal::HUP) {
                    // A stopped command receives nothing else.
                    let _ = kill_process_group(self.command, Signal::CONT);
                }
            }
            None => {
                self.orders = None;
                // A launcher without the order ends by itself.
                self.launcher = None;
                if !self.policy.ignore {
                    self.stop();
                }
            }
        }
    }

    fn stop(&mut self) {
        self.stopping.get_or_insert_with(|| Clock::Boot.now());
    }

    /// Reaps children. Returns whether no descendant is left.
    fn reap(&mut self) -> bool {
        let (mut end, mut stopped) = (None, None);
        let command = self.command;
        let alone = family::reap(|pid, status| match pid == command {
            true if status.stopped() => {
                stopped = status.stopping_signal().and_then(Signal::from_named_raw);
            }
            true => end = Some(status),
            false => {}
        });
        if let Some(status) = end {
            self.end = Some(status);
            self.stop();
        } else if let Some(signal) = stopped {
            self.news.post(News::Stopped(signal));
        }
        alone
    }

    fn ask(&mut self) {
        self.asked = true;
        family::ask(getpid());
        if self.end.is_none() {
            self.news.post(News::Asked);
        }
    }

    async fn kill(mut self) {
        if family::strike(getpid(), Some(self.command)) {
            self.news.post(News::Killed(Clock::Boot.now().since(self.until)));
        }
        let (command, mut end) = (self.command, self.end);
        let left = family::kill(getpid(), &HashSet::new(), |pid, status| {
            if pid == command && !status.stopped() {
                end = Some(status);
            }
        })
        .await;
        self.finish(End { code: end.map_or(255, code), left }).await;
    }

    /// Reports the end, which is the last step.
    async fn finish(mut self, end: End) {
        self.news.post(News::Ended(end));
        self.news.flush().await;
    }
}

/// Gives the order to begin, which ends with the socket.
async fn begin(launcher: UnixStream, environment: Environment) -> io::Result<()> {
    launcher.set_nonblocking(true)?;
    let mut launcher = tokio::net::UnixStream::from_std(launcher)?;
    launcher.write_all(&serde_json::to_vec(&environment)?).await
}

/// The next order; `None` if the holder is gone. After that, it waits for ever.
async fn next_order(orders: &mut Option<Lines<BufReader<OwnedReadHalf>>>) -> Option<Order> {
    match orders {
        None => std::future::pending().await,
        Some(orders) => Order::parse(&orders.next_line().await.ok()??),
    }
}

/// The instant so long before; [`Instant::NEVER`] stays.
fn before(instant: Instant, duration: Duration) -> Instant {
    if instant == Instant::NEVER { instant } else { instant - duration }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::supervise::launcher::order;

    /// What the launcher and the holder get, if the lock is held until then.
    async fn begun(until: Instant) -> (Option<Environment>, String) {
        let (mut holder, leash) = UnixStream::pair().unwrap();
        let (socket, launcher) = UnixStream::pair().unwrap();
        let mut supervisor = Supervisor::new(leash, getpid(), socket).unwrap();
        supervisor.obey(Some(Order::Until(until)));
        let policy = Policy { grace: Duration::ZERO, ignore: false };
        let environment = vec![("NAME".to_owned(), "x".to_owned())];
        supervisor.obey(Some(Order::Begin(Begin { policy, environment })));
        supervisor.news.flush().await;
        let order = order(launcher).unwrap();
        drop(supervisor);
        let mut news = String::new();
        holder.read_to_string(&mut news).unwrap();
        (order, news)
    }

    /// The holder was held up between the grant and the command.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn no_command_begins_after_its_deadline() {
        let now = Clock::Boot.now();
        assert_eq!(begun(now).await, (None, "late\n".to_owned()));
        let environment = vec![("NAME".to_owned(), "x".to_owned())];
        let later = now + Duration::from_secs(3600);
        assert_eq!(begun(later).await, (Some(environment), String::new()));
    }
}
