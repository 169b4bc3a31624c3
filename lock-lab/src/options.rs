//! The options that every kind of server has.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::{LabError, Network, program, tls::Tls};

/// The options that every kind of server has.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The program, if not the one of the Debian package.
    pub(crate) binary: Option<PathBuf>,
    pub(crate) args: Vec<OsString>,
    pub(crate) in_memory: bool,
    pub(crate) tls: Option<Tls>,
    /// The network in which the server gets a place of its own, if it is not on 127.0.0.1.
    pub(crate) network: Option<Network>,
}

impl Common {
    /// Finds the program: `default` unless another one was set.
    pub(crate) fn program(
        &self,
        default: impl AsRef<Path>,
        install: &'static str,
    ) -> Result<PathBuf, LabError> {
        program::find(self.binary.as_deref().unwrap_or(default.as_ref()), install)
    }
}
