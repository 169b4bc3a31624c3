//! Waits for locks within the work under other locks.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::Either;
use tokio::task::futures::TaskLocalFuture;

use crate::{Held, Kind, Lock, LockName, driver::trace};

tokio::task_local! {
    /// The locks under which the present code runs. Set while work is polled, and not for a whole
    /// task, which may do several things at once.
    static WITHIN: Vec<Held>;
}

/// The work under these locks, which knows of them if somebody reads of crossing orders.
pub(super) fn within<F: Future>(
    held: &[Held],
    work: F,
) -> Either<TaskLocalFuture<Vec<Held>, F>, F> {
    if !trace::warns() {
        return Either::Right(work);
    }
    let mut all = WITHIN.try_with(Clone::clone).unwrap_or_default();
    all.extend_from_slice(held);
    Either::Left(WITHIN.scope(all, work))
}

/// Notes that the present code acquires `name`, under the locks of its work. Only of exclusive
/// locks, since others need not wait for each other, and not of a wait that is none.
pub(super) fn wanted(lock: &Lock, name: &LockName, kind: Kind) {
    if kind != Kind::Exclusive || lock.wait == Some(Duration::ZERO) || !trace::warns() {
        return;
    }
    let is_alone = |held: &&Held| {
        held.kind() == Kind::Exclusive
            && held.name() != name
            && Arc::ptr_eq(&held.0.client, &lock.client)
    };
    // Outside of such work there is nothing to note.
    let _ = WITHIN.try_with(|held| {
        for outer in held.iter().filter(is_alone).map(Held::name) {
            if lock.client.orders.cross(outer, name) {
                trace::orders_cross(name, outer);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_reader_work_is_left_as_it_is() {
        assert!(matches!(within(&[], async {}), Either::Right(_)));
    }
}
