//! The signals that are for the command.

use std::{fs, future::poll_fn, io, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

const FORWARDED: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// Listens for all of them: from then on, none ends this process.
pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// Leaves those alone that were ignored from the start, as `nohup` asks: the command inherits
    /// that.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let heard = FORWARDED.into_iter().filter(|one| ignored & (1 << (one.as_raw() - 1)) == 0);
        let listen = |one: Signal| Ok((one, signal(SignalKind::from_raw(one.as_raw()))?));
        heard.map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let came = |(signal, stream): &mut (Signal, Stream)| {
                stream.poll_recv(cx).is_ready().then_some(*signal)
            };
            self.0.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Waits for one that asks to end.
    pub(crate) async fn end(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if !matches!(signal, Signal::USR1 | Signal::USR2) {
                return signal;
            }
        }
    }
}

/// The mask of ignored signals.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
