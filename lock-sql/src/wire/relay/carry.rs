//! Copies bytes between the client library and a server.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, sink},
    net::{TcpStream, UnixListener, UnixStream},
    time::{sleep, timeout},
};

use super::Target;

/// Pause if the process has no file descriptor left for a connection.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time that the server takes no byte: as long as the longest limit of a request. Without
/// it, a connection that the library has given up would last until the kernel gives up.
const STALL: Duration = Duration::from_mins(1);
/// Most bytes that are copied at once.
const PART: usize = 16 * 1024;

/// Takes the library's connections. The end of this does not end them.
pub(super) async fn accept(listener: UnixListener, target: Arc<Target>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let (target, alive) = (target.clone(), target.carried.subscribe());
                tokio::spawn(async move {
                    carry(client, &target).await;
                    drop(alive);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// One connection: ends as soon as the library hangs up, and only then if it reaches the server.
async fn carry(mut client: UnixStream, target: &Target) {
    let mut early = Vec::with_capacity(PART);
    let dialed = tokio::select! {
        dialed = dial(target) => dialed,
        () = hear(&mut client, &mut early) => return,
    };
    match dialed {
        Ok(server) => copy(client, server, early).await,
        Err(why) => {
            let Target { host, port, unseen, .. } = target;
            // Before the library sees the end of its connection, which is when `client` is dropped.
            unseen.note(&why, format!("no connection to {host}:{port}: {why}"));
        }
    }
}

async fn dial(target: &Target) -> io::Result<TcpStream> {
    let server = TcpStream::connect((target.host.as_str(), target.port)).await?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// Keeps what the library sends before the server is reached. Returns when it has hung up.
async fn hear(client: &mut UnixStream, early: &mut Vec<u8>) {
    while client.read_buf(early).await.is_ok_and(|read| read > 0) {}
}

/// The library does not half-close a connection and go on: when it hangs up, the server sees the end
/// of both directions.
async fn copy(mut client: UnixStream, mut server: TcpStream, early: Vec<u8>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let forth = async {
        let mut part = early;
        loop {
            match timeout(STALL, to_server.write_all(&part)).await {
                Ok(Ok(())) => part.clear(),
                // The server's last words may still be on their way back.
                Ok(Err(_)) => std::future::pending().await,
                Err(_) => return,
            }
            if !from_client.read_buf(&mut part).await.is_ok_and(|read| read > 0) {
                return;
            }
        }
    };
    tokio::select! {
        () = forth => return,
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
    drop(server);
    // As of a server without a relay, the library can still read the last words after it has sent
    // something in vain. They may say that the server has not executed that.
    let _ = client.shutdown().await;
    let _ = tokio::io::copy(&mut client, &mut sink()).await;
}
