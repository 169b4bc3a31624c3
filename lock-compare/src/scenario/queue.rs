//! The queue of a lock, as an operator sees it.

use std::{sync::Arc, time::Duration};

use distlock::{Entry, Error, Locks};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{sleep, timeout},
};
use uuid::Uuid;

use crate::{Failure, Player, trace};

/// Longest wait for the queue to have its expected form.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the queue until it has the wanted form.
pub(crate) async fn until_line(
    operator: &Locks,
    name: &str,
    wanted: impl Fn(&[Entry]) -> bool,
) -> Result<Vec<Entry>, Failure> {
    match until_line_within(operator, name, PATIENCE, wanted).await? {
        Some(line) => Ok(line),
        None => Err(format!("the queue is not as expected after {} s", PATIENCE.as_secs()).into()),
    }
}

/// Same as [`until_line`]. Returns `None` after the limit.
pub(crate) async fn until_line_within(
    operator: &Locks,
    name: &str,
    patience: Duration,
    wanted: impl Fn(&[Entry]) -> bool,
) -> Result<Option<Vec<Entry>>, Failure> {
    let look = async {
        loop {
            let line = operator.inspect(name).await?;
            if wanted(&line) {
                return Ok::<_, Failure>(line);
            }
            sleep(PAUSE).await;
        }
    };
    timeout(patience, look).await.ok().transpose()
}

/// Waits until an attempt has joined the queue behind `before` entries. Returns that attempt.
pub(crate) async fn joined(operator: &Locks, name: &str, before: usize) -> Result<Uuid, Failure> {
    let line = until_line(operator, name, |line| line.len() > before).await?;
    let attempt = line.get(before).and_then(|entry| entry.attempt);
    Ok(attempt.ok_or("the entry shows no attempt")?)
}

/// Whether an attempt is in the queue.
pub(crate) fn has(line: &[Entry], attempt: Uuid) -> bool {
    line.iter().any(|entry| entry.attempt == Some(attempt))
}

/// Waits, tells that this client has entered, and releases. Returns distlock's error, if it did not
/// enter.
pub(crate) async fn turn(
    client: Arc<dyn Player>,
    name: String,
    ttl: Duration,
    (asking, who): (trace::Entry, &'static str),
    tell: UnboundedSender<&'static str>,
) -> Result<Option<Error>, Failure> {
    match client.acquire(&name, ttl, PATIENCE * 2).await {
        Ok(Some(hold)) => {
            asking.granted(hold.token());
            tell.send(who)?;
            asking.leaves(hold).await?;
            Ok(None)
        }
        Ok(None) => Err(format!("{who} waits in vain").into()),
        Err(failure) => {
            let error = failure.downcast::<Error>()?;
            asking.ended("its place is lost");
            Ok(Some(*error))
        }
    }
}
