//! Waits for locks within the work under other locks.

use std::{future::Future, sync::Arc};

use futures_util::future::Either;
use tokio::task::futures::TaskLocalFuture;

use crate::{Held, LockName, api::client::Client, driver::trace};

tokio::task_local! {
    /// The locks under which the present code runs. Set while work is polled, and not for a whole
    /// task, which may do several things at once.
    static WITHIN: Vec<Held>;
}

/// The work under these locks, which knows of them if somebody reads of crossing orders.
pub(super) fn within<F: Future>(
    held: impl Iterator<Item = Held>,
    work: F,
) -> Either<TaskLocalFuture<Vec<Held>, F>, F> {
    if !trace::tells_orders() {
        return Either::Right(work);
    }
    let mut all = WITHIN.try_with(Clone::clone).unwrap_or_default();
    all.extend(held);
    Either::Left(WITHIN.scope(all, work))
}

/// Notes that the present code waits for these locks, under those of its work.
pub(super) fn wanted<'a>(client: &Arc<Client>, names: impl Iterator<Item = &'a LockName>) {
    // Outside of such work there is nothing to note.
    let _ = WITHIN.try_with(|held| {
        for name in names {
            let others = held.iter().map(|held| &held.0);
            let others =
                others.filter(|hold| Arc::ptr_eq(&hold.client, client) && hold.name != *name);
            let crossed = others.filter(|hold| client.orders.cross(&hold.name, name));
            crossed.for_each(|hold| trace::orders_cross(name, &hold.name));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_reader_work_is_left_as_it_is() {
        assert!(matches!(within(std::iter::empty(), async {}), Either::Right(_)));
    }
}
