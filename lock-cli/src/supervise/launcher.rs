//! The process that becomes the command.

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::passing::receive;
use crate::exit::{Code, Failure};

/// Waits for the command's stdin, which is the word to begin, and becomes the command.
///
/// If the supervisor dies before the death signal is set, the socket ends instead.
pub(crate) fn launch(command: &[OsString]) -> Result<ExitCode, Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(io::Error::from)
        .map_err(Failure::system("binding the command to its supervisor"))?;
    let stdin = receive(rustix::stdio::stdin()).map_err(Failure::system("waiting to begin"))?;
    let (Some(stdin), Some((program, arguments))) = (stdin, command.split_first()) else {
        return Ok(Code::System.into());
    };
    let error = Command::new(program).args(arguments).stdin(stdin).exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::NotExecutable,
    };
    Err(Failure::new(code, format!("cannot run {}: {error}", program.display())))
}
