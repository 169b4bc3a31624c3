//! The differences between the kinds of server.

use std::{ffi::OsString, fmt, net::SocketAddr, path::Path, pin::Pin};

use crate::{Counters, LabError, options::Common};

/// A boxed future, so that [`Store`] works as a trait object.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, LabError>> + Send + 'a>>;

/// The command line of a server.
pub type Arguments = Result<Vec<OsString>, LabError>;

/// A kind of server with its options: its start and its requests.
pub trait Store: fmt::Debug + Send + Sync {
    /// The scheme of its URL.
    fn scheme(&self) -> &'static str;

    /// Number of its ports; clients use the first.
    fn ports(&self, _common: &Common) -> usize {
        1
    }

    /// The port to which the lab itself sends its requests. Default: that of the clients.
    fn control(&self, _common: &Common) -> usize {
        0
    }

    /// The part of the URL before the host, with the `@`.
    fn login(&self) -> String {
        String::new()
    }

    /// The part of the URL after the port, with the `/`.
    fn path(&self) -> &'static str {
        ""
    }

    /// The system user that runs it if the lab is root and the server refuses root.
    fn user(&self) -> Option<&'static str> {
        None
    }

    /// Finds all programs and files that it needs.
    fn installed(&self, common: &Common) -> Result<(), LabError>;

    /// Writes its configuration, if it has one, and returns the command line.
    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments;

    /// Succeeds if the server at `addr` does real work.
    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()>;

    /// Finishes a start when the server answers.
    fn settle(&self, _home: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Reads its numbers.
    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters>;
}
