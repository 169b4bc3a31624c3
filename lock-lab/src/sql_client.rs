//! The command line clients that come with the SQL servers.

use std::{
    io,
    process::{Output, Stdio},
};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::{LabError, ask::bounded};

/// A command line client, with arguments and environment for its server.
pub(crate) struct Client {
    pub(crate) server: &'static str,
    pub(crate) command: Command,
    /// Returns whether a failed client did not reach the server, or lost it.
    pub(crate) was_cut_off: fn(&Output) -> bool,
}

impl Client {
    /// Runs statements until one fails, and returns what they print.
    pub(crate) async fn run(self, statements: &str) -> Result<String, LabError> {
        let Self { server, mut command, was_cut_off } = self;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        let output = bounded(&format!("asking {server}"), async {
            let output = feed(command, statements).await?;
            match !output.status.success() && was_cut_off(&output) {
                true => Err(io::Error::new(io::ErrorKind::NotConnected, said(&output.stderr))),
                false => Ok(output),
            }
        })
        .await?;
        match output.status.success() {
            true => Ok(said(&output.stdout)),
            false => Err(LabError::Reply { server, reply: said(&output.stderr) }),
        }
    }
}

async fn feed(mut command: Command, statements: &str) -> io::Result<Output> {
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let write = async move {
        if let Some(mut stdin) = stdin {
            // A client that ends early prints the reason.
            let _ = stdin.write_all(statements.as_bytes()).await;
        }
    };
    tokio::join!(write, child.wait_with_output()).1
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}
