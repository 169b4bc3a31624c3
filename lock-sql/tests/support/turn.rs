//! Tests that keep the machine busy run one at a time.

use tokio::sync::{Mutex, MutexGuard};

static BUSY: Mutex<()> = Mutex::const_new(());

/// Waits until no other such test runs in this program.
pub async fn turn() -> MutexGuard<'static, ()> {
    BUSY.lock().await
}
