//! TLS for the client crate, which has none that this driver could use.
//!
//! The crate's own TLS brings a second library of ciphers, and checks the certificate against the
//! host's name alone. So the crate connects in plain text to a port of 127.0.0.1 that a tunnel
//! holds, and the tunnel speaks TLS to the server.
//!
//! Other programs on this machine can reach that port, too. The tunnel has the client's
//! certificate, so it serves this process only: before it dials, it looks for the other end of the
//! connection among this process's own descriptors (see `same_process.rs`). A few of these searches
//! run at a time, and what comes meanwhile waits unaccepted: a flood of strangers takes no memory.
//! And the port stays taken while a client of the crate may still dial it: another program that took
//! it would be sent the login.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, keep::poison::lock};
use tokio::{
    io::{AsyncWriteExt, copy, split},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::wire::{
    dial::{Dialer, Stream},
    same_process,
    tls_error::explained,
};

/// How long the port stays taken after the last use of the tunnel: longer than the crate tries to
/// close a session that was dropped while it was opened.
const LINGER: Duration = Duration::from_secs(120);
/// The most time that a server gets to close a connection that the crate has closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// The pause after a connection that could not be taken, such as for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The most searches for the other end of a connection at a time: each takes a thread and goes
/// through all connections of the machine and all descriptors of the process.
const CHECKS: usize = 4;

/// A port of 127.0.0.1 that leads to one host by TLS.
pub(crate) struct Tunnel {
    pub(crate) addr: SocketAddr,
    route: Arc<Route>,
    _end: DropGuard,
}

/// Where a tunnel leads.
struct Route {
    host: String,
    dialer: Dialer,
    /// Why the last connection was not made, or broke.
    failure: Mutex<Option<String>>,
    checks: Arc<Semaphore>,
    /// Whether a connection of another program was reported: the first one is.
    warned: AtomicBool,
}

impl Tunnel {
    /// Opens a tunnel; its tasks run in the current runtime.
    pub(crate) async fn open(host: String, dialer: Dialer) -> io::Result<Self> {
        same_process::check()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (addr, end) = (listener.local_addr()?, CancellationToken::new());
        let (failure, warned) = (Mutex::default(), AtomicBool::new(false));
        let checks = Arc::new(Semaphore::new(CHECKS));
        let route = Arc::new(Route { host, dialer, failure, checks, warned });
        tokio::spawn(listen(listener, route.clone(), end.clone()));
        Ok(Self { addr, route, _end: end.drop_guard() })
    }

    /// Returns why the last connection was not made, or broke, with the host.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = lock(&self.route.failure).clone();
        failure.map(|why| format!("{}: {why}", self.route.host))
    }
}

async fn listen(listener: TcpListener, route: Arc<Route>, end: CancellationToken) {
    let serving = async {
        // The bound is never closed.
        while let Ok(check) = route.checks.clone().acquire_owned().await {
            match listener.accept().await {
                Ok((stream, from)) => drop(tokio::spawn(route.clone().serve(stream, from, check))),
                // A lack of descriptors may last.
                Err(_) => Clock::Boot.sleep(PAUSE).await,
            }
        }
    };
    end.run_until_cancelled(serving).await;
    Clock::Boot.sleep(LINGER).await;
    drop(listener);
}

impl Route {
    /// Serves one connection to its end, if it is of this process.
    async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        from: SocketAddr,
        check: OwnedSemaphorePermit,
    ) {
        let served = async {
            let is_own = same_process::is_own(from, stream.local_addr()?).await;
            drop(check);
            if !is_own {
                self.refuse(from);
                return Ok(());
            }
            stream.set_nodelay(true)?;
            let server = self.dialer.connect(&self.host, &self.host).await?;
            lock(&self.failure).take();
            carry(stream, server).await.map_err(explained)
        };
        if let Err(error) = served.await {
            tracing::debug!(target: "distlock", host = self.host, %error, "TLS");
            *lock(&self.failure) = Some(error.to_string());
        }
    }

    fn refuse(&self, from: SocketAddr) {
        if !self.warned.swap(true, Relaxed) {
            tracing::warn!(
                target: "distlock", host = self.host, %from,
                "a connection of another program was refused; the next ones are not reported"
            );
        }
    }
}

/// Carries bytes both ways until one side ends.
async fn carry(client: TcpStream, server: Box<dyn Stream>) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = split(server);
    let mut down = std::pin::pin!(copy(&mut from_server, &mut to_client));
    tokio::select! {
        ended = &mut down => return ended.map(drop),
        _ = copy(&mut from_client, &mut to_server) => {}
    }
    // The crate has closed its side. What it has sent must still reach the server. What comes after
    // that is no failure: late answers find nobody.
    let closing = async { tokio::join!(to_server.shutdown(), down) };
    let _ = Clock::Boot.timeout(CLOSE_LIMIT, closing).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use lock_core::Tls;

    use super::*;

    #[tokio::test]
    async fn connections_wait_unaccepted_while_all_searches_are_under_way() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let host = server.local_addr().unwrap().to_string();
        let dialer = Dialer::new(&Tls::default(), Duration::from_secs(20)).unwrap();
        let tunnel = Tunnel::open(host, dialer).await.unwrap();
        let checks = &tunnel.route.checks;
        let busy = checks.acquire_many(CHECKS as u32).await.unwrap();
        let mut clients = Vec::new();
        for _ in 0..3 * CHECKS {
            clients.push(TcpStream::connect(tunnel.addr).await.unwrap());
        }
        let served = Clock::Boot.timeout(Duration::from_millis(200), server.accept()).await;
        assert!(served.is_none(), "one was served without a search");
        drop(busy);
        for _ in &clients {
            server.accept().await.unwrap();
        }
    }
}
