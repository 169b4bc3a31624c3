//! The listening socket of a proxy, which can close and open again on its port.

use std::{
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
};

/// Most connections that wait to be accepted.
const BACKLOG: u32 = 1024;

#[derive(Debug)]
pub(super) struct Door {
    addr: SocketAddr,
    /// Bound to the port but never listening. The kernel refuses connections to such a port and
    /// does not give it to others, so the door can open again.
    _keeper: TcpSocket,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    listener: Option<TcpListener>,
    /// The accepting task, while the door is closed.
    waiting: Option<Waker>,
}

impl State {
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        // Stored in any case: the code that takes the listener away also takes its wake-up.
        self.waiting = Some(cx.waker().clone());
        match &self.listener {
            Some(listener) => listener.poll_accept(cx),
            None => Poll::Pending,
        }
    }
}

impl Door {
    pub(super) fn open() -> io::Result<Self> {
        let keeper = bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let addr = keeper.local_addr()?;
        let listener = Some(bind(addr)?.listen(BACKLOG)?);
        let state = Mutex::new(State { listener, waiting: None });
        Ok(Self { addr, _keeper: keeper, runtime: Handle::current(), state })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(super) async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = poll_fn(|cx| self.state().poll_accept(cx)).await?;
        Ok(stream)
    }

    /// Refuses connections from now on, also those that wait to be accepted.
    pub(super) fn close(&self) {
        if let Some(listener) = self.state().listener.take() {
            // A process that is being started has a copy of the socket until it is another program.
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
    }

    /// Listens, if the door is closed.
    pub(super) fn reopen(&self) {
        let mut state = self.state();
        if state.listener.is_some() {
            return;
        }
        let _runtime = self.runtime.enter();
        let listener = bind(self.addr).and_then(|socket| socket.listen(BACKLOG));
        state.listener =
            Some(listener.expect("the keeper holds the port, and a descriptor is free"));
        if let Some(waker) = state.waiting.take() {
            waker.wake();
        }
    }

    /// Each change is one assignment, so a panic elsewhere leaves the state whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Binds a socket in a way that lets the keeper and the listener share the port.
fn bind(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
