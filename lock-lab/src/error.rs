//! The errors of a lab.

use std::{fmt, io};

/// Why a server of the lab did not start or did not answer.
///
/// `Debug` prints the same text as `Display`, so that `unwrap` in a test shows a readable log.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A program or file that the server needs is not on this machine.
    #[error("{binary} was not found; install it with: {install}")]
    Missing {
        /// The name of the program or file.
        binary: String,
        /// The command that installs it on Debian.
        install: &'static str,
    },
    /// The server ended, or was not ready in time.
    #[error("{server} did not start: {reason}\n--- last lines of its log ---\n{log}")]
    Start {
        /// The kind of server, as its URL names it: `redis`, `mysql` ..
        server: &'static str,
        /// The reason.
        reason: String,
        /// The last 30 lines of the server's log.
        log: String,
    },
    /// The machine permits no network of namespaces, or lacks a program that makes one.
    #[error("no network on this machine: {why}")]
    NoNetwork {
        /// The reason.
        why: String,
    },
    /// The system refused something, or the server did not answer in time.
    #[error("{action}: {source}")]
    Io {
        /// The failed action.
        action: String,
        /// The system's error; `TimedOut` if the server was silent.
        source: io::Error,
    },
    /// The server answered with an error, or with a reply that the lab cannot read.
    #[error("{server} answered: {reply}")]
    Reply {
        /// The kind of server, as its URL names it: `redis`, `mysql` ..
        server: &'static str,
        /// The answer.
        reply: String,
    },
}

impl LabError {
    /// The error of a machine that permits no network.
    pub(crate) fn no_network(error: io::Error) -> Self {
        Self::NoNetwork { why: error.to_string() }
    }

    /// Returns a function for `map_err` that adds the failed action.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { action: action.into(), source }
    }
}

impl fmt::Debug for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
