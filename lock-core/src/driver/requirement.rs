//! The promises that a program can require.

use super::worded::worded;

worded! {
    /// A promise that a program requires; see [`Connect::require`](crate::Connect::require).
    pub enum Requirement {
        /// Waiters are served in order of arrival.
        Fifo => "fifo (waiters served in order of arrival)",
        /// Waiters do not poll.
        Push => "push (waiters that do not poll)",
        /// Every grant carries a token, at least as a best effort.
        Fencing => "fencing (a token with every grant)",
        /// Every grant carries a token, and tokens always rise.
        StrictFencing => "strict fencing (tokens that rise whatever happens)",
        /// A held lock survives a restart of the server.
        SurvivesRestart => "survives-restart (a held lock outlives a server restart)",
        /// A held lock survives the loss of a node.
        SurvivesFailover => "survives-failover (a held lock outlives the loss of a node)",
        /// The store sends a message to a holder that lost its lock.
        LossPush => "loss-push (the store itself tells a holder of its loss)",
        /// A fixed term ends on the server.
        ServerTerm => "server-term (a fixed term ends on the server)",
        /// An exclusive lock can be detached for another process.
        Detach => "detach (a lock that can be left to another process)",
    }
}
