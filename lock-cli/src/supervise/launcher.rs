//! The process that becomes the command.

use std::{
    ffi::{CStr, OsString},
    io::{self, Read},
    os::unix::{net::UnixStream, process::CommandExt},
    process::{Command, ExitCode},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::message::Environment;
use crate::{
    arguments::VARIABLE,
    exit::{Code, Failure},
};

/// The name of a launcher.
pub(super) const LAUNCH: &CStr = c"launch";

/// Waits for the order to begin, and becomes the command. The socket is the supervisor's.
///
/// If the supervisor dies before the death signal is set, the socket ends instead.
pub(super) fn launch(socket: UnixStream, command: &[OsString]) -> Result<ExitCode, Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(io::Error::from)
        .map_err(Failure::system("binding the command to its supervisor"))?;
    let order = order(socket).map_err(Failure::system("waiting to begin"))?;
    let (Some(environment), Some((program, arguments))) = (order, command.split_first()) else {
        return Ok(Code::System.into());
    };
    let mut command = Command::new(program);
    let command = command.args(arguments).envs(environment).env_remove(VARIABLE);
    let error = command.exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::NotExecutable,
    };
    Err(Failure::new(code, format!("cannot run {}: {error}", program.display())))
}

/// The command's variables from the lock. `None` if it must not begin.
pub(super) fn order(mut socket: UnixStream) -> io::Result<Option<Environment>> {
    let mut text = Vec::new();
    socket.read_to_end(&mut text)?;
    // A supervisor that does not give the order sends nothing. One that dies may send a part.
    Ok(serde_json::from_slice(&text).ok())
}
