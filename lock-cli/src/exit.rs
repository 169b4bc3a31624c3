//! Why the program ends, as an exit code and a sentence. Where a lock was held, `held::answer` decides.

use std::{fmt, io, process::ExitCode};

use distlock::Error;

use crate::plain::Plain;

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

/// Prints a line on stderr, with foreign text made [plain](Plain). Ignores a failed write.
pub(crate) fn say(text: impl fmt::Display) {
    use std::io::Write;
    let line = format!("distlock: {}\n", Plain(text));
    let _ = io::stderr().write_all(line.as_bytes());
}
