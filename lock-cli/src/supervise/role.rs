//! What a process is that `distlock run` has started, and nobody else.

use std::{env, ffi::OsString, process::ExitCode};

use super::{launcher::launch, supervisor::supervise};
use crate::{exit::Failure, runtime};

/// The first argument says it; the others are the command. Two processes more have to be loaded for each
/// command, so they do without the command line's options, and the last one without a runtime.
pub(crate) enum Role {
    Supervisor(Vec<OsString>),
    Launcher(Vec<OsString>),
}

pub(super) const SUPERVISE: &str = "supervise";
pub(super) const LAUNCH: &str = "launch";

impl Role {
    pub(crate) fn of_this_process() -> Option<Self> {
        let mut arguments = env::args_os().skip(1);
        match arguments.next()?.to_str()? {
            SUPERVISE => Some(Self::Supervisor(arguments.collect())),
            LAUNCH => Some(Self::Launcher(arguments.collect())),
            _ => None,
        }
    }

    pub(crate) fn play(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Supervisor(command) => runtime()?.block_on(supervise(&command)),
            Self::Launcher(command) => launch(&command),
        }
    }
}
