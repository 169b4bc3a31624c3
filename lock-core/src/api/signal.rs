//! The signals that ask a program to end.

/// Waits for the next one.
#[cfg(unix)]
pub(crate) async fn asks_to_end() {
    use tokio::signal::unix::{SignalKind, signal};

    let next = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            // Not to be had here: the other one is enough.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = next(SignalKind::interrupt()) => {}
        () = next(SignalKind::terminate()) => {}
    }
}

/// Waits for the next one.
#[cfg(not(unix))]
pub(crate) async fn asks_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Not to be had here.
        std::future::pending().await
    }
}
