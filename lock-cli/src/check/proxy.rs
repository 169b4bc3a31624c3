//! A client's own network: TCP through this process, which can be cut.

use std::{
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::sleep,
    try_join,
};

/// The size of a read.
const CHUNK: usize = 16 * 1024;
/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(20);

/// The traffic that passes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Open,
    /// Requests, and no replies.
    Requests,
    Nothing,
    /// Nothing, and connections are closed.
    Dead,
}

impl Mode {
    fn lets_up(self) -> bool {
        matches!(self, Self::Open | Self::Requests)
    }

    fn lets_down(self) -> bool {
        self == Self::Open
    }
}

/// A door on this machine for each host. Data that a cut holds back is delivered when the cut ends,
/// as TCP would deliver it by sending it again. A drop closes everything.
#[derive(Debug)]
pub(super) struct Proxy {
    doors: Vec<SocketAddr>,
    mode: watch::Sender<Mode>,
    /// Ends the connections that there are.
    end: watch::Sender<()>,
}

impl Proxy {
    /// Opens a door on 127.0.0.1 for each `HOST:PORT`.
    pub(super) async fn start(hosts: &[String]) -> io::Result<Self> {
        let (mode, end) = (watch::Sender::new(Mode::Open), watch::Sender::new(()));
        let mut doors = Vec::new();
        for host in hosts {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            doors.push(listener.local_addr()?);
            let links = serve(listener, host.clone(), mode.subscribe(), end.subscribe());
            let life = mode.subscribe();
            tokio::spawn(while_alive(life, links));
        }
        Ok(Self { doors, mode, end })
    }

    /// The doors, in the order of the hosts.
    pub(super) fn doors(&self) -> &[SocketAddr] {
        &self.doors
    }

    /// Sets what passes from now on. [`Mode::Dead`] is final.
    pub(super) fn set(&self, mode: Mode) {
        self.mode.send_if_modified(|now| {
            let changes = *now != Mode::Dead;
            if changes {
                *now = mode;
            }
            changes
        });
    }

    /// Ends the open connections, and loses what a cut holds back. New ones work as before.
    pub(super) fn end(&self) {
        self.end.send_replace(());
    }
}

/// Drops the work, with its connections, when the proxy is dead or dropped.
async fn while_alive(mut mode: watch::Receiver<Mode>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        _ = mode.wait_for(|mode| *mode == Mode::Dead) => {}
    }
}

async fn serve(
    listener: TcpListener,
    host: String,
    mode: watch::Receiver<Mode>,
    end: watch::Receiver<()>,
) {
    let mut links = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                while links.try_join_next().is_some() {}
                let (link, mut end) = (link(client, host.clone(), mode.clone()), end.clone());
                // Only an end from now on concerns this connection.
                end.mark_unchanged();
                links.spawn(async move {
                    tokio::select! {
                        ended = link => ended,
                        _ = end.changed() => Ok(()),
                    }
                });
            }
            // The client has left, or no descriptor is free: soon there is one.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn link(
    mut client: TcpStream,
    host: String,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    // Connecting sends packets, too.
    until(&mut mode, Mode::lets_up).await;
    let mut server = TcpStream::connect(host).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    try_join!(
        pump(from_client, to_server, mode.clone(), Mode::lets_up),
        pump(from_server, to_client, mode, Mode::lets_down),
    )?;
    Ok(())
}

/// Carries bytes one way until the sender closes; an error ends both ways.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
    passes: fn(Mode) -> bool,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = from.read(&mut chunk).await?;
        until(&mut mode, passes).await;
        match length {
            0 => return to.shutdown().await,
            length => to.write_all(&chunk[..length]).await?,
        }
    }
}

async fn until(mode: &mut watch::Receiver<Mode>, passes: fn(Mode) -> bool) {
    // If the proxy is gone, so is this task at its next await.
    let _ = mode.wait_for(|mode| passes(*mode)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that echoes, and a client of it through a proxy.
    async fn pair() -> (Proxy, TcpStream) {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let host = server.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut stream, _) = server.accept().await.unwrap();
            let (mut read, mut write) = stream.split();
            tokio::io::copy(&mut read, &mut write).await
        });
        let proxy = Proxy::start(&[host]).await.unwrap();
        let client = TcpStream::connect(proxy.doors()[0]).await.unwrap();
        (proxy, client)
    }

    #[tokio::test]
    async fn held_back_data_arrives_after_the_cut() {
        for mode in [Mode::Nothing, Mode::Requests] {
            let (proxy, mut client) = pair().await;
            proxy.set(mode);
            client.write_all(b"late").await.unwrap();
            let mut answer = [0; 4];
            let early = Duration::from_millis(100);
            assert!(tokio::time::timeout(early, client.read_exact(&mut answer)).await.is_err());
            proxy.set(Mode::Open);
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"late");
        }
    }

    #[tokio::test]
    async fn held_back_data_is_lost_with_its_connection() {
        let (proxy, mut client) = pair().await;
        client.write_all(b"here").await.unwrap();
        client.read_exact(&mut [0; 4]).await.unwrap();
        proxy.set(Mode::Requests);
        client.write_all(b"lost").await.unwrap();
        proxy.end();
        proxy.set(Mode::Open);
        assert!(!matches!(client.read(&mut [0]).await, Ok(1..)));
        TcpStream::connect(proxy.doors()[0]).await.unwrap();
    }

    #[tokio::test]
    async fn a_dead_client_gets_nothing_and_cannot_reconnect() {
        let (proxy, mut client) = pair().await;
        proxy.set(Mode::Dead);
        assert!(!matches!(client.read(&mut [0]).await, Ok(1..)));
        proxy.set(Mode::Open);
        assert!(TcpStream::connect(proxy.doors()[0]).await.is_err());
    }
}
