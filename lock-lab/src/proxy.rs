//! A TCP proxy that breaks the network.

mod door;
mod late;
mod link;
mod mode;
mod pump;
mod shared;
mod tally;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::task::{JoinHandle, JoinSet};

pub use self::tally::ProxyStats;
use self::{link::Link, mode::Mode, shared::Shared};
use crate::LabError;

/// A TCP proxy on 127.0.0.1 in front of one server.
///
/// All methods act at once, on open connections too, and none waits. Of [`cut`](Self::cut),
/// [`half_open`](Self::half_open), [`refuse`](Self::refuse) and [`heal`](Self::heal) the last call
/// counts. Bytes that a fault holds back are not lost: the [`heal`](Self::heal) delivers them, as
/// TCP would by sending them again. So no stream of bytes ever has a hole; a connection that loses
/// bytes is reset.
///
/// Closing works as in all of TCP: FIN and RST travel in the stream, so a cut also holds them, and
/// one half of a connection may close before the other. If the server refuses the proxy, the
/// client's connection is accepted and then reset, perhaps before its `connect` returns: it gets
/// `ConnectionReset`, while a dead server without a proxy gives `ConnectionRefused`.
///
/// Dropping the proxy resets its connections and ends its tasks.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy to `target` on a free port, in the current tokio runtime.
    ///
    /// Panics outside a tokio runtime.
    pub async fn start(target: SocketAddr) -> Result<Self, LabError> {
        let shared = Shared::open(target).map_err(LabError::io("starting a proxy"))?;
        let shared = Arc::new(shared);
        let accepting = tokio::spawn(accept(Arc::clone(&shared)));
        Ok(Self { shared, accepting })
    }

    /// Returns the address for clients.
    pub fn addr(&self) -> SocketAddr {
        self.shared.door.addr()
    }

    /// Cuts the network: nothing passes in either direction, and no side gets an error.
    ///
    /// Open connections stay open. New ones are accepted and get no bytes.
    pub fn cut(&self) {
        self.shared.set(Mode::Cut);
    }

    /// Lets requests pass and holds the replies.
    pub fn half_open(&self) {
        self.shared.set(Mode::HalfOpen);
    }

    /// Resets all connections and refuses new ones, like a machine without the server.
    pub fn refuse(&self) {
        self.shared.set(Mode::Refuse);
        self.reset();
    }

    /// Ends [`cut`](Self::cut), [`half_open`](Self::half_open), [`refuse`](Self::refuse) and
    /// [`drop_next_reply`](Self::drop_next_reply). Held bytes are delivered. A
    /// [`delay`](Self::delay) stays.
    pub fn heal(&self) {
        self.shared.drop_next_reply.store(false, Relaxed);
        self.shared.set(Mode::Open);
    }

    /// Resets all open connections, with RST to both sides. The bytes in them are lost. New ones
    /// work as before.
    pub fn reset(&self) {
        if let Some(links) = &mut *self.shared.links() {
            *links = JoinSet::new();
        }
    }

    /// Swallows the next bytes that come from the server, once, and resets their connection.
    ///
    /// It hits the next bytes on any connection. HTTP/2 servers also send bytes on their own; to be
    /// sure which reply is lost, use [`half_open`](Self::half_open), wait until the server has
    /// acted, then [`reset`](Self::reset) and [`heal`](Self::heal). [`ProxyStats::replies_dropped`]
    /// counts it.
    pub fn drop_next_reply(&self) {
        self.shared.drop_next_reply.store(true, Relaxed);
    }

    /// Catches the next bytes from a client that contain `part`, once, on any connection.
    ///
    /// They arrive at [`deliver`](Self::deliver), at any later time and after anything that the
    /// client does meanwhile. Their connection is dead for the client from then on: it gets nothing
    /// more there, and all else that it sends there is lost. Other connections work as before. A
    /// second call replaces the first. [`caught`](Self::caught) counts the caught bytes.
    pub fn catch(&self, part: &[u8]) {
        self.shared.late.want(part, true);
    }

    /// Same as [`catch`](Self::catch), and their connection lives on: what the client sends there
    /// later arrives after them.
    pub fn hold(&self, part: &[u8]) {
        self.shared.late.want(part, false);
    }

    /// Ends a [`catch`](Self::catch) or [`hold`](Self::hold) that has not caught anything yet.
    pub fn catch_nothing(&self) {
        self.shared.late.want_nothing();
    }

    /// Returns the number of chunks that were [caught](Self::catch) or [held](Self::hold) so far,
    /// delivered or not.
    pub fn caught(&self) -> u64 {
        self.shared.late.caught()
    }

    /// Delivers the chunks that were [caught](Self::catch) so far.
    pub fn deliver(&self) {
        self.shared.late.deliver();
    }

    /// Delays all bytes by this time in each direction, from now on. Zero ends it.
    ///
    /// The order stays, and so does the throughput: bytes travel side by side, as on a long cable.
    /// A connection itself is set up without delay. The timer has a resolution of 1 ms and is never
    /// early.
    pub fn delay(&self, delay: Duration) {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.shared.delay_nanos.store(nanos, Relaxed);
    }

    /// Returns the counters of the proxy.
    pub fn stats(&self) -> ProxyStats {
        self.shared.tally.stats()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.door.close();
        self.accepting.abort();
        *self.shared.links() = None;
    }
}

async fn accept(shared: Arc<Shared>) {
    loop {
        match shared.door.accept().await {
            Ok(client) => {
                let link = Link::new(client, Arc::clone(&shared));
                let mut links = shared.links();
                // The proxy was dropped while this task ran on another thread.
                let Some(links) = &mut *links else { return };
                while links.try_join_next().is_some() {}
                links.spawn(link.run());
            }
            Err(error) => pause_after(error).await,
        }
    }
}

/// Waits a little: without a free file descriptor, the next attempt would also fail at once.
async fn pause_after(error: io::Error) {
    tracing::warn!(%error, "the proxy cannot accept");
    tokio::time::sleep(Duration::from_millis(10)).await;
}
