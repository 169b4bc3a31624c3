//! The holder: it tells the supervisor the deadlines, and passes signals on to it.

use std::{
    collections::HashSet, ffi::OsString, io, mem::take, os::unix::net::UnixStream,
    process::ExitCode, time::Duration,
};

use distlock::Held;
use lock_core::{Clock, Instant, validity::margin};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::unix::OwnedReadHalf,
    task::yield_now,
    time::{MissedTickBehavior, interval},
};

use super::{
    family,
    fork::{Side, fork},
    job_control::JobControl,
    message::{Begin, End, Environment, News, Order},
    outbox::Outbox,
    supervisor::{SUPERVISE, supervise},
};
use crate::{
    arguments::shown,
    exit::{Failure, Outcome, say},
    on_lost::Policy,
    signals::{Signals, bit},
};

/// Time for the supervisor to end what a loss has left. One that is traced, frozen or stopped again
/// does not.
const PATIENCE: Duration = Duration::from_millis(250);
/// Time for one that runs, as on a machine that is too busy.
const LONGEST: Duration = Duration::from_secs(5);

/// The terms of a command under a lock.
pub(crate) struct Job {
    pub(crate) environment: Environment,
    pub(crate) policy: Policy,
    pub(crate) ttl: Duration,
}

/// A supervisor whose command has not begun. It starts while the holder waits for the lock. A drop
/// ends it.
pub(crate) struct Ready {
    supervisor: Pid,
    socket: UnixStream,
    /// The groups of processes that ran before: what a shell has started before it became this
    /// program is none of the command's.
    before: HashSet<Pid>,
}

impl Ready {
    /// Starts a supervisor for a command, before this process starts a runtime. In the supervisor
    /// and in the launcher it returns at their end, with the exit code.
    pub(crate) fn start(command: &[OsString]) -> Result<Result<Self, ExitCode>, Failure> {
        let failed = || Failure::system("starting the command");
        let before = family::groups();
        // If the supervisor dies, this process inherits its children.
        set_child_subreaper(Some(getpid())).map_err(io::Error::from).map_err(failed())?;
        let shown = shown(command);
        // In a group of its own: keys at the terminal are for the holder, which passes them on.
        match fork(SUPERVISE, &shown).map_err(failed())? {
            Side::Parent(supervisor, socket) => Ok(Ok(Self { supervisor, socket, before })),
            Side::Child(leash) => supervise(leash, command, &shown).map(Err),
        }
    }

    /// The supervisor, which is a child of this process.
    pub(crate) fn supervisor(&self) -> Pid {
        self.supervisor
    }

    /// Runs the command under the lock until it has ended, with all its descendants.
    pub(crate) async fn run(
        self,
        held: &Held,
        job: Job,
        signals: &mut Signals,
    ) -> io::Result<Outcome> {
        Holder::new(&self, job)?.feed(held, signals).await
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // It has nothing to do any more, and its launcher dies with it.
        let _ = kill_process(self.supervisor, Signal::KILL);
    }
}

struct Holder {
    supervisor: Pid,
    news: Lines<BufReader<OwnedReadHalf>>,
    orders: Outbox<Order>,
    job: Job,
    /// The deadline last sent to the supervisor.
    until: Instant,
    jobs: JobControl,
    /// The signals that this process has passed on, as a mask.
    passed: u64,
    lost: bool,
    before: HashSet<Pid>,
}

impl Holder {
    fn new(ready: &Ready, job: Job) -> io::Result<Self> {
        let supervisor = ready.supervisor;
        let socket = ready.socket.try_clone()?;
        socket.set_nonblocking(true)?;
        let (news, orders) = tokio::net::UnixStream::from_std(socket)?.into_split();
        let (news, orders) = (BufReader::new(news).lines(), Outbox::new(orders));
        let (until, jobs) = (Instant::default(), JobControl::of_this_process());
        let (passed, lost, before) = (0, false, ready.before.clone());
        Ok(Self { supervisor, news, orders, job, until, jobs, passed, lost, before })
    }

    async fn feed(mut self, held: &Held, signals: &mut Signals) -> io::Result<Outcome> {
        let mut ticks = interval(self.job.ttl / 20);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut keys = Signals::of_jobs()?;
        self.renew(held);
        let lost = held.lost();
        tokio::pin!(lost);
        let (mut reason, mut late) = (None, None);
        let (mut patience, mut longest) = (Instant::NEVER, Instant::NEVER);
        let outcome = loop {
            tokio::select! {
                // A signal before the command's end counts, so that the work is not marked as done.
                biased;
                signal = signals.next() => self.pass_on(signal),
                news = self.news.next_line() => match news.ok().flatten().map(|line| News::parse(&line)) {
                    Some(Some(News::Ended(end))) => {
                        self.count(signals).await;
                        break self.end(held, end);
                    }
                    // After a loss, the end counts, and a kill that came before it.
                    Some(Some(News::Killed(before))) if reason.is_some() => {
                        late = late.max(Some(before));
                    }
                    Some(Some(_)) if reason.is_some() => {}
                    Some(Some(news)) => self.hear(news),
                    // The supervisor exited or sent an unreadable line.
                    Some(None) | None => break self.orphan().await,
                },
                why = &mut lost, if reason.is_none() && !self.job.policy.ignore => {
                    (reason, late) = (Some(why), self.lose(held));
                    let now = Clock::Boot.now();
                    (patience, longest) = (now + PATIENCE, now + LONGEST);
                }
                () = Clock::Boot.sleep_until(patience.min(longest)), if reason.is_some() => {
                    let now = Clock::Boot.now();
                    if now >= longest || !family::runs(self.supervisor) {
                        let _ = kill_process(self.supervisor, Signal::KILL);
                        break self.orphan().await;
                    }
                    patience = now + PATIENCE;
                }
                signal = keys.next() => self.pass_on(signal),
                _ = ticks.tick() => self.renew(held),
                () = self.orders.flush(), if !self.orders.is_empty() => {}
            }
        };
        // Last: stderr may have no reader.
        late.inspect(|late| self.killed(*late));
        Ok(Outcome { reason, ..outcome })
    }

    fn renew(&mut self, held: &Held) {
        self.until = deadline(held);
        self.orders.post(Order::Until(self.until));
    }

    fn pass_on(&mut self, signal: Signal) {
        match signal {
            Signal::TSTP => return self.jobs.stop(),
            Signal::CONT => return self.jobs.continued(),
            _ => self.passed |= bit(signal),
        }
        self.orders.post(Order::Signal(signal));
    }

    /// Counts the signals that have come until now, without waiting for one.
    async fn count(&mut self, signals: &mut Signals) {
        loop {
            tokio::select! {
                biased;
                signal = signals.next() => self.passed |= bit(signal),
                // The runtime has heard of signals meanwhile.
                () = yield_now() => return,
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Started(group) => {
                self.jobs.started(group);
                let (policy, environment) = (self.job.policy, take(&mut self.job.environment));
                self.orders.post(Order::Begin(Begin { policy, environment }));
            }
            News::Late => self.lost = true,
            News::Stopped(signal) => self.jobs.stopped(signal),
            News::Asked => {
                self.lost = true;
                say("the lock is about to be lost: the command is asked to end");
            }
            News::Killed(late) => self.killed(late),
            News::Ended(_) => {}
        }
    }

    fn end(&self, held: &Held, end: End) -> Outcome {
        self.jobs.reclaim();
        let lost = self.lost || (!self.job.policy.ignore && !held.is_valid());
        let ended_by = |signal: Signal| i32::from(end.code) == 128 + signal.as_raw();
        // Keys may have reached the command alone.
        let handed = self.jobs.has_handed_over();
        let got = |signal| self.passed & bit(signal) != 0 || handed && signal == Signal::INT;
        let signals = [Signal::INT, Signal::TERM, Signal::HUP];
        let signal = signals.into_iter().find(|signal| got(*signal) && ended_by(*signal));
        let asked = self.is_asked()
            || signal.is_some()
            || ended_by(Signal::HUP)
            || (handed && ended_by(Signal::QUIT));
        let (signalled, left) = (self.is_signalled(), end.left);
        Outcome { code: Some(end.code), signal, asked, signalled, left, lost, reason: None }
    }

    /// Whether a signal asked the command to end. To some commands, SIGHUP means something else.
    fn is_asked(&self) -> bool {
        self.passed & (bit(Signal::INT) | bit(Signal::QUIT) | bit(Signal::TERM)) != 0
    }

    /// Whether a signal may have asked the command to end.
    fn is_signalled(&self) -> bool {
        self.is_asked() || self.passed & bit(Signal::HUP) != 0
    }

    /// Kills the command, as the supervisor may be stopped. The supervisor kills what is left, and
    /// counts what it may not kill: all below it is the command's, also what `/proc` does not show.
    /// Returns how late that was, if there was anything to kill.
    fn lose(&mut self, held: &Held) -> Option<Duration> {
        self.lost = true;
        let late = family::strike(self.supervisor, self.jobs.group())
            .then(|| Clock::Boot.now().since(self.until));
        // From now on the deadline has passed.
        self.renew(held);
        let _ = kill_process(self.supervisor, Signal::CONT);
        late
    }

    /// Reports a kill that was later than the margin, as on a machine that is too busy.
    fn killed(&self, late: Duration) {
        tracing::debug!(target: "distlock", killed_late_ms = late.as_secs_f64() * 1000.0, "killed");
        if late > margin(self.job.ttl) {
            say(format_args!(
                "the command was killed {late:.0?} late: another client may have had the lock meanwhile"
            ));
        }
    }

    /// Kills the processes that the supervisor would have killed, as far as `/proc` shows them: one
    /// that it hides may be what ran before.
    async fn orphan(&mut self) -> Outcome {
        let left = family::kill(getpid(), &self.before, |_, _| {}).await;
        self.jobs.reclaim();
        let (asked, signalled, lost) = (self.is_asked(), self.is_signalled(), self.lost);
        Outcome { code: None, signal: None, asked, signalled, left, lost, reason: None }
    }
}

/// The end of the hold, less the margin, on the boot clock.
fn deadline(held: &Held) -> Instant {
    // Reads the clock first: a pause in between makes the deadline earlier, not later.
    let now = Clock::Boot.now();
    now + held.remaining()
}
