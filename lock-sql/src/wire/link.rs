//! What a connection to a database of one kind can do.

use sqlx::Connection;

use crate::{
    layout::{dialect::Dialect, row::Rows},
    wire::{failure::Failure, verdict::Origin},
};

/// A connection to a database of one kind.
pub(crate) trait Link: Connection + Sized + 'static {
    const DIALECT: Dialect;

    /// Asks how many commits wait for a standby, where no time limit of the server ends that.
    const HUNG_COMMITS: Option<&str> = None;

    /// Makes a connection with the settings that scripts need. Returns it, and where the server's
    /// data comes from, if the server tells.
    fn make(
        options: &Self::Options,
    ) -> impl Future<Output = Result<(Self, Option<Origin>), Failure>> + Send;

    /// Sends a script. Returns the rows of all its statements; the inner error is about an answer
    /// that makes no sense.
    fn fetch(
        &mut self,
        script: String,
    ) -> impl Future<Output = sqlx::Result<sqlx::Result<Rows>>> + Send;
}
