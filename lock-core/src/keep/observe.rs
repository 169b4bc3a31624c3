//! Changes of the leader, sent to one observer.

use std::time::Duration;

use tokio::{sync::mpsc, time::timeout};

use crate::{Effect, Error, Leader, Observed, Result, duration::shown, keep::errors::unavailable};

/// Reads the changes of the leader of one name.
pub trait Observer: Send {
    /// Waits for changes, in order: the leader, or `None` if there is none. An empty list means no
    /// change. Fails with [`Error::Closed`] if the client has ended, and with errors that another
    /// try cannot mend.
    fn changes(&mut self) -> impl Future<Output = Result<Vec<Option<Leader>>>> + Send;
}

/// Sends the present leader and then every change, until the receiver is dropped, the client has
/// ended, or an error comes that another try cannot mend. It sends that error, too.
pub async fn tell(
    mut observer: impl Observer,
    mut changes: Vec<Option<Leader>>,
    out: mpsc::Sender<Observed>,
) {
    let work = async {
        loop {
            for change in changes {
                if out.send(Ok(change)).await.is_err() {
                    return;
                }
            }
            changes = match observer.changes().await {
                Ok(changes) => changes,
                Err(Error::Closed { .. }) => return,
                Err(error) => return drop(out.send(Err(error)).await),
            };
        }
    };
    tokio::select! {
        () = work => {}
        () = out.closed() => {}
    }
}

/// Waits for the first look at a store, which may try again and again. `peer` is the name of the
/// silent side in errors. Fails after `limit`.
pub async fn first<T>(
    (store, peer): (&'static str, &'static str),
    limit: Duration,
    look: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, look).await.unwrap_or_else(|_| {
        let silent = format!("{peer} did not answer for {}", shown(limit));
        Err(unavailable(store, "observe", Effect::None, silent))
    })
}
