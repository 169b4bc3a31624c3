//! The end of the runtime in which a connection lives.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Tells that it has come. Each call asks, and some wait for it: a flag for those that ask, so that
/// they take no lock.
#[derive(Debug, Default)]
pub(crate) struct End {
    has_come: AtomicBool,
    token: CancellationToken,
}

impl End {
    pub(crate) fn come(&self) {
        self.has_come.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}
