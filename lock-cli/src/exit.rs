//! Why the program ends, as an exit code and a sentence.

use std::{fmt, io, process::ExitCode};

use distlock::Error;
#[cfg(target_os = "linux")]
use distlock::LossReason;
#[cfg(target_os = "linux")]
use rustix::process::{Signal, getpid};

use crate::escape::Plain;

/// Exit codes, taken from `sysexits.h` where it has one. `--help` lists them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The answer is no.
    No = 1,
    Usage = 64,
    Unavailable = 69,
    Rejected = 70,
    System = 71,
    Busy = 75,
    Denied = 77,
    Config = 78,
    Lost = 79,
    /// A store broke a promise.
    Broken = 80,
    TimedOut = 124,
    NotExecutable = 126,
    NotFound = 127,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        (code as u8).into()
    }
}

/// An error to show to the user.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    text: String,
    /// Another exit code, as the command line asks.
    exit: Option<u8>,
    silent: bool,
    /// The reader of stdout has closed it: not an error.
    unread: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), exit: None, silent: false, unread: false }
    }

    /// Turns an error of the operating system into a failure. `what` names the failed action.
    pub(crate) fn system(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(Code::System, format!("{what}: {error}"))
    }

    /// The same with another code, and the place of the mistake.
    pub(crate) fn within(self, code: Code, place: impl fmt::Display) -> Self {
        Self { code, text: format!("{place}: {}", self.text), ..self }
    }

    /// If others held the lock: the same with this exit code, or without a word.
    pub(crate) fn when_busy(self, exit: Option<u8>, silent: bool) -> Self {
        match self.code {
            Code::Busy | Code::TimedOut => Self { exit, silent, ..self },
            _ => self,
        }
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Prints it on stderr, and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        if self.unread {
            return ExitCode::SUCCESS;
        }
        if !self.silent {
            say(&self.text);
        }
        self.exit.map_or_else(|| self.code.into(), ExitCode::from)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            // Other clients use another number. The command line refuses words that are no number.
            Error::InvalidOption { option, .. } if option == "permits" => Code::Config,
            Error::InvalidName { .. } | Error::InvalidOption { .. } | Error::InvalidUrl { .. } => {
                Code::Usage
            }
            Error::Unmet { .. } | Error::Unsupported { .. } | Error::Misconfigured { .. } => {
                Code::Config
            }
            Error::Contended { .. } => Code::Busy,
            Error::WaitTimeout { .. } => Code::TimedOut,
            Error::Lost { .. } | Error::PlaceLost { .. } => Code::Lost,
            Error::Unavailable { .. } => Code::Unavailable,
            Error::Denied { .. } => Code::Denied,
            _ => Code::Rejected,
        };
        Self::new(code, error.to_string())
    }
}

/// Writing to stdout failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let unread = error.kind() == io::ErrorKind::BrokenPipe;
        Self { unread, ..Self::new(Code::System, format!("cannot write to stdout: {error}")) }
    }
}

/// How a command under a lock has ended.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The command's exit code; `None` if its end was not seen.
    pub(crate) code: Option<u8>,
    /// The signal that this process has got as well, if it ended the command.
    pub(crate) signal: Option<Signal>,
    /// Whether a signal asked it to end, also one that came too late.
    pub(crate) asked: bool,
    /// Whether one may have asked it to end: also SIGHUP, which does not end each command.
    pub(crate) signalled: bool,
    /// Number of descendants that may not be killed, and live on.
    pub(crate) left: usize,
    /// Whether the command was ended, or asked to end, because of the lock.
    pub(crate) lost: bool,
    /// The reason of the loss, if it was known before the command ended.
    pub(crate) reason: Option<LossReason>,
}

#[cfg(target_os = "linux")]
impl Outcome {
    /// The exit code of `run`: a lost lock counts more than the command's own code.
    pub(crate) fn exit(self) -> Result<ExitCode, Failure> {
        if self.left > 0 {
            say(format_args!(
                "{} processes of the command may not be killed, and live on",
                self.left
            ));
        }
        match self {
            Self { lost: true, reason, .. } => {
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                let what = format!("the lock was lost and the command ended{reason}");
                Err(Failure::new(Code::Lost, what))
            }
            Self { signal: Some(signal), .. } => Ok(by_signal(signal)),
            Self { code: Some(code), .. } => Ok(code.into()),
            Self { code: None, .. } => {
                let what = "the supervisor was killed, and the command with it";
                Err(Failure::new(Code::System, what))
            }
        }
    }
}

/// Ends this process by the signal: a shell ends its script only if its program died of SIGINT, and
/// `systemctl stop` counts SIGTERM as a clean end. Otherwise, the exit code that a shell gives to a
/// program that a signal ended.
#[cfg(target_os = "linux")]
pub(crate) fn by_signal(signal: Signal) -> ExitCode {
    // SIGQUIT would leave an image of this program. The first process of a container cannot die.
    if signal != Signal::QUIT && !getpid().is_init() {
        // It does not return.
        let _ = signal_hook::low_level::emulate_default_handler(signal.as_raw());
    }
    u8::try_from(128 + signal.as_raw()).unwrap_or(255).into()
}

/// Prints a line on stderr, with foreign text made [plain](Plain). Ignores a failed write.
pub(crate) fn say(text: impl fmt::Display) {
    use std::io::Write;
    let line = format!("distlock: {}\n", Plain(text));
    let _ = io::stderr().write_all(line.as_bytes());
}
