//! The process that becomes the command.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, ExitCode},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{descriptor::receive, message::Environment};
use crate::exit::{Code, Failure};

/// The first argument of a launcher.
pub(super) const LAUNCH: &str = "launch";

/// Waits for the order to begin, and becomes the command. Its stdin is the supervisor's end of a
/// socket.
///
/// If the supervisor dies before the death signal is set, the socket ends instead.
pub(super) fn launch(command: &[OsString]) -> Result<ExitCode, Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(io::Error::from)
        .map_err(Failure::system("binding the command to its supervisor"))?;
    let word = wait().map_err(Failure::system("waiting to begin"))?;
    let (Some((stdin, environment)), Some((program, arguments))) = (word, command.split_first())
    else {
        return Ok(Code::System.into());
    };
    let error = Command::new(program).args(arguments).envs(environment).stdin(stdin).exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::NotExecutable,
    };
    Err(Failure::new(code, format!("cannot run {}: {error}", program.display())))
}

/// The command's stdin, and its variables from the lock. `None` if it must not begin.
fn wait() -> io::Result<Option<(OwnedFd, Environment)>> {
    let socket = rustix::stdio::stdin();
    let Some(stdin) = receive(socket)? else { return Ok(None) };
    let mut text = Vec::new();
    UnixStream::from(socket.as_fd().try_clone_to_owned()?).read_to_end(&mut text)?;
    // A supervisor that died in between has sent only a part.
    Ok(serde_json::from_slice(&text).ok().map(|environment| (stdin, environment)))
}
