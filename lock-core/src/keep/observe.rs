//! Changes of the leader, told to one observer.

use std::time::Duration;

use tokio::{sync::mpsc, time::timeout};

use crate::{Effect, Error, Leader, Observed, Result, duration::shown, keep::errors::unavailable};

/// Sees changes of the leader of one name.
pub trait Observer: Send {
    /// Waits for what is new, in order: who leads, or `None` if nobody does. Nothing new is no
    /// change.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the client has ended; else what no patience helps against.
    fn changes(&mut self) -> impl Future<Output = Result<Vec<Option<Leader>>>> + Send;
}

/// Tells what there is and then every change, until the receiver is dropped, the client has ended,
/// or there is an error that no patience helps against, which is told.
///
/// # Cancel safety
///
/// Dropping the future ends the observation; the receiver then ends, too.
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

/// Waits for the first look at a store, which may try again and again. `peer`: how errors call what
/// does not answer.
///
/// # Errors
///
/// The look's, and [`Error::Unavailable`] after `limit`.
///
/// # Cancel safety
///
/// Dropping the future drops the look.
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
