//! The signals that are for the command, and hearing them. `supervise::holder` passes them on.

use std::{fs, future::poll_fn, io, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

const FORWARDED: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// A listener for signals. From then on, none of them ends this process.
pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// Listens for the signals that are passed to the command. A signal that was ignored from the
    /// start stays ignored, as `nohup` asks: the command inherits that.
    pub(crate) fn listen() -> io::Result<Self> {
        Self::to(&FORWARDED)
    }

    /// Listens for the signals of a terminal and of a shell with jobs.
    pub(crate) fn of_jobs() -> io::Result<Self> {
        Self::to(&[Signal::TSTP, Signal::CONT, Signal::WINCH])
    }

    fn to(signals: &[Signal]) -> io::Result<Self> {
        let ignored = ignored();
        let heard = signals.iter().copied().filter(|one| ignored & bit(*one) == 0);
        let listen = |one: Signal| Ok((one, signal(SignalKind::from_raw(one.as_raw()))?));
        heard.map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let came = |(signal, stream): &mut (Signal, Stream)| {
                stream.poll_recv(cx).is_ready().then_some(*signal)
            };
            self.0.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Waits for a signal that asks to end.
    pub(crate) async fn end(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if !matches!(signal, Signal::USR1 | Signal::USR2) {
                return signal;
            }
        }
    }
}

fn ignored() -> u64 {
    mask(&fs::read_to_string("/proc/self/status").unwrap_or_default(), "SigIgn:")
}

/// A mask of signals from a `/proc/PID/status`. Empty if it is not there.
pub(crate) fn mask(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// A signal's place in a mask.
pub(crate) fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}
