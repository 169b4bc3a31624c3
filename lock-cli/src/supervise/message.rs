//! The messages between the holder and the supervisor, one per line.

use std::{fmt, time::Duration};

use lock_core::Instant;
use rustix::process::{Pid, Signal, WaitStatus};
use serde::{Deserialize, Serialize};

use super::outbox::Message;
use crate::on_lost::Policy;

/// From the holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// The lock is held until then.
    Until(Instant),
    /// The command may begin.
    Begin(Begin),
    /// A signal for the command's process group.
    Signal(Signal),
}

/// Data that is known only after the grant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Begin {
    pub(crate) policy: Policy,
    /// The variables that the command inherits from the lock.
    pub(crate) environment: Environment,
}

pub(crate) type Environment = Vec<(String, String)>;

/// From the supervisor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum News {
    /// The command's process group exists.
    Started(Pid),
    /// The deadline had passed before the command began.
    Late,
    /// The command was stopped, as by ctrl-z, or because it wants the terminal.
    Stopped(Signal),
    /// The command was asked to end, because the lock is about to be lost.
    Asked,
    /// The command was killed, so long after the deadline.
    Killed(Duration),
    /// The command and all its descendants have ended.
    Ended(End),
}

/// The end of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct End {
    /// The code of a shell: 128 and the signal's number if a signal ended it.
    pub(crate) code: u8,
    /// Number of descendants that may not be killed, and live on.
    pub(crate) left: usize,
}

impl Order {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("until", nanos) => {
                let since_boot = Duration::from_nanos(nanos.parse().ok()?);
                Some(Self::Until(Instant::default() + since_boot))
            }
            ("begin", begin) => serde_json::from_str(begin).ok().map(Self::Begin),
            ("signal", number) => Signal::from_named_raw(number.parse().ok()?).map(Self::Signal),
            _ => None,
        }
    }
}

impl Message for Order {
    fn replaces(&self, older: &Self) -> bool {
        matches!((self, older), (Self::Until(_), Self::Until(_)))
    }
}

impl Message for News {}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(until) => write!(f, "until {}", until.since(Instant::default()).as_nanos()),
            // JSON keeps it on one line, with any text in the names.
            Self::Begin(begin) => {
                write!(f, "begin {}", serde_json::to_string(begin).map_err(|_| fmt::Error)?)
            }
            Self::Signal(signal) => write!(f, "signal {}", signal.as_raw()),
        }
    }
}

impl News {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("started", pid) => Pid::from_raw(pid.parse().ok()?).map(Self::Started),
            ("late", "") => Some(Self::Late),
            ("stopped", number) => Signal::from_named_raw(number.parse().ok()?).map(Self::Stopped),
            ("asked", "") => Some(Self::Asked),
            ("killed", nanos) => nanos.parse().ok().map(Duration::from_nanos).map(Self::Killed),
            ("ended", end) => {
                let (code, left) = end.split_once(' ')?;
                Some(Self::Ended(End { code: code.parse().ok()?, left: left.parse().ok()? }))
            }
            _ => None,
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(f, "started {}", pid.as_raw_pid()),
            Self::Late => f.write_str("late"),
            Self::Stopped(signal) => write!(f, "stopped {}", signal.as_raw()),
            Self::Asked => f.write_str("asked"),
            Self::Killed(late) => write!(f, "killed {}", late.as_nanos()),
            Self::Ended(End { code, left }) => write!(f, "ended {code} {left}"),
        }
    }
}

/// The exit code that a shell would show.
pub(crate) fn code(status: WaitStatus) -> u8 {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or(signal).unwrap_or(255);
    u8::try_from(code).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_parsed_back() {
        let until = Instant::default() + Duration::from_nanos(1_234_567_890_123);
        let begin = Order::Begin(Begin {
            policy: Policy { grace: Duration::from_millis(1500), ignore: true },
            environment: vec![("NAME".to_owned(), "two\nlines".to_owned())],
        });
        for order in [Order::Until(until), begin, Order::Signal(Signal::USR1)] {
            assert!(!order.to_string().contains('\n'));
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
        let pid = Pid::from_raw(812).unwrap();
        let killed = News::Killed(Duration::from_micros(1500));
        let end = News::Ended(End { code: 143, left: 2 });
        for news in
            [News::Started(pid), News::Late, News::Stopped(Signal::TTIN), News::Asked, killed, end]
        {
            assert_eq!(News::parse(&news.to_string()), Some(news));
        }
        for nonsense in ["", "until", "until x", "signal 0", "ended 1", "begin", "begin {}"] {
            assert_eq!((Order::parse(nonsense), News::parse(nonsense)), (None, None), "{nonsense}");
        }
    }
}
