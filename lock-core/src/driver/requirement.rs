//! The promises that a program can require.

use std::fmt;

/// A promise that a program requires; see [`Connect::require`](crate::Connect::require).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Requirement {
    /// Waiters are served in order of arrival.
    Fifo,
    /// Waiters do not poll.
    Push,
    /// Every grant carries a token, at least as a best effort.
    Fencing,
    /// Every grant carries a token, and tokens always rise.
    StrictFencing,
    /// A held lock survives a restart of the server.
    SurvivesRestart,
    /// A held lock survives the loss of a node.
    SurvivesFailover,
    /// The store sends a message to a holder that lost its lock.
    LossPush,
    /// A fixed term ends on the server.
    ServerTerm,
    /// An exclusive lock can be detached for another process.
    Detach,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "fifo (waiters served in order of arrival)",
            Self::Push => "push (waiters that do not poll)",
            Self::Fencing => "fencing (a token with every grant)",
            Self::StrictFencing => "strict fencing (tokens that rise whatever happens)",
            Self::SurvivesRestart => "survives-restart (a held lock outlives a server restart)",
            Self::SurvivesFailover => "survives-failover (a held lock outlives the loss of a node)",
            Self::LossPush => "loss-push (the store itself tells a holder of its loss)",
            Self::ServerTerm => "server-term (a fixed term ends on the server)",
            Self::Detach => "detach (a lock that can be left to another process)",
        })
    }
}
