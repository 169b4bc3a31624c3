//! The part of a proxy that its connections share.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet};

use super::{
    door::Door,
    late::Late,
    mode::{Direction, Mode},
    tally::Tally,
};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) target: SocketAddr,
    pub(super) door: Door,
    mode: watch::Sender<Mode>,
    /// One task per connection; `None` after the drop of the proxy.
    links: Mutex<Option<JoinSet<()>>>,
    pub(super) delay_nanos: AtomicU64,
    pub(super) drop_next_reply: AtomicBool,
    pub(super) late: Late,
    pub(super) tally: Tally,
}

impl Shared {
    /// Listens on a free port. Everything passes.
    pub(super) fn open(target: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            target,
            door: Door::open()?,
            mode: watch::Sender::new(Mode::Open),
            links: Mutex::new(Some(JoinSet::new())),
            delay_nanos: AtomicU64::new(0),
            drop_next_reply: AtomicBool::new(false),
            late: Late::new(),
            tally: Tally::default(),
        })
    }

    pub(super) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
        match mode {
            Mode::Refuse => self.door.close(),
            _ => self.door.reopen(),
        }
    }

    /// Waits until the network lets bytes pass in this direction.
    ///
    /// Fails if there is no server any more: a connection accepted just before must not stay open.
    pub(super) async fn until_open(&self, direction: Direction) -> io::Result<()> {
        let mut mode = self.mode.subscribe();
        let known = |mode: &Mode| mode.lets_pass(direction) || *mode == Mode::Refuse;
        match *mode.wait_for(known).await.expect("the sender lives in `self`") {
            Mode::Refuse => Err(io::ErrorKind::ConnectionReset.into()),
            Mode::Cut | Mode::HalfOpen | Mode::Open => Ok(()),
        }
    }

    pub(super) fn delay(&self) -> Option<Duration> {
        let nanos = self.delay_nanos.load(Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// Each change of the set is one call, so a panic elsewhere leaves it whole.
    pub(super) fn links(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
