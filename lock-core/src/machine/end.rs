//! The end of the runtime in which a connection lives.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// A flag that is set once the runtime has ended. Every call checks it, and some wait for it. It is
/// an atomic flag, so that a check takes no lock.
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
