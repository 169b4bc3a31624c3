//! The signals that ask a program to stop.

/// Waits for the next one and names it.
#[cfg(unix)]
pub(crate) async fn next() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};

    let one = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            // Not to be had here: the other one is enough.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = one(SignalKind::interrupt()) => "SIGINT",
        () = one(SignalKind::terminate()) => "SIGTERM",
    }
}

/// Waits for the next one and names it.
#[cfg(not(unix))]
pub(crate) async fn next() -> &'static str {
    if tokio::signal::ctrl_c().await.is_err() {
        // Not to be had here.
        return std::future::pending().await;
    }
    "ctrl-c"
}
