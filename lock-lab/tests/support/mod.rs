//! Waits of the lab's tests.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Longest wait for something that must happen, on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time of a watch for something that must not happen. It can only make a test pass wrongly.
pub const MOMENT: Duration = Duration::from_millis(300);

/// Waits until `condition` holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}

/// Waits until `condition` holds. It may ask a server.
pub async fn until<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    until_some(|| {
        let asked = condition();
        async move { asked.await.then_some(()) }
    })
    .await;
}

/// Waits until `find` returns `Some`.
pub async fn until_some<T, F: Future<Output = Option<T>>>(mut find: impl FnMut() -> F) -> T {
    let waiting = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it never happened")
}
