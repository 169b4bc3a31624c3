//! The task that connects a node again.

use std::{sync::Weak, time::Duration};

use lock_core::keep::backoff::Backoff;
use tokio::sync::watch;

use super::{Link, Node};

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Connects a node whenever it has no connection, until it is closed or dropped.
pub(super) async fn keep_connected(node: Weak<Node>, mut link: watch::Receiver<Link>) {
    loop {
        match link.wait_for(|link| !matches!(link, Link::Up(_))).await.as_deref() {
            Ok(Link::Down(_)) => {}
            _ => return,
        }
        let mut backoff = Backoff::new(FIRST, LONGEST);
        loop {
            let Some(node) = node.upgrade() else { return };
            if node.connect().await.is_ok() {
                break;
            }
            drop(node);
            tokio::select! {
                () = backoff.wait() => {}
                _ = link.wait_for(|link| matches!(link, Link::Closed)) => return,
            }
        }
    }
}
