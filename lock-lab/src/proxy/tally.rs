//! The counters of a proxy.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::mode::Direction;

/// The counters of a [`Proxy`](super::Proxy). "Up" is from client to server.
///
/// A chunk is the result of one read, so with a delay between requests it is one flight. Chunks
/// that a fault holds back or swallows also count: they were sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Connections that are open now.
    pub connections_open: u64,
    /// Connections accepted so far.
    pub connections_total: u64,
    /// Chunks from clients.
    pub chunks_up: u64,
    /// Chunks from the server.
    pub chunks_down: u64,
    /// Bytes from clients.
    pub bytes_up: u64,
    /// Bytes from the server.
    pub bytes_down: u64,
    /// Chunks swallowed by [`drop_next_reply`](super::Proxy::drop_next_reply).
    pub replies_dropped: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    opened: AtomicU64,
    closed: AtomicU64,
    up: Flow,
    down: Flow,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Flow {
    chunks: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    pub(super) fn opened(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    pub(super) fn closed(&self) {
        self.closed.fetch_add(1, Relaxed);
    }

    pub(super) fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(super) fn chunk(&self, direction: Direction, bytes: usize) {
        let flow = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        flow.chunks.fetch_add(1, Relaxed);
        flow.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn stats(&self) -> ProxyStats {
        // First, so that a connection that opens and closes meanwhile cannot make the count
        // negative.
        let closed = self.closed.load(Relaxed);
        let opened = self.opened.load(Relaxed);
        ProxyStats {
            connections_open: opened.saturating_sub(closed),
            connections_total: opened,
            chunks_up: self.up.chunks.load(Relaxed),
            chunks_down: self.down.chunks.load(Relaxed),
            bytes_up: self.up.bytes.load(Relaxed),
            bytes_down: self.down.bytes.load(Relaxed),
            replies_dropped: self.dropped.load(Relaxed),
        }
    }
}
