//! The role of a process that only `distlock run` starts.

use std::{env, ffi::OsString, process::ExitCode};

use super::{
    launcher::{LAUNCH, launch},
    supervisor::{SUPERVISE, supervise},
};
use crate::{exit::Failure, runtime};

/// The first argument names the role; the others are the command. Each command needs two more
/// processes, so they do not parse options, and the launcher has no runtime.
pub(crate) enum Role {
    Supervisor(Vec<OsString>),
    Launcher(Vec<OsString>),
}

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
