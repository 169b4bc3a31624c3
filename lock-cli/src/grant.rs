//! The lock or the permit that `run` and `hold` ask for.

use std::{future::Future, pin::Pin, time::Duration};

use distlock::{LockGuard, Result as LockResult};
use rustix::process::Signal;

use crate::{exit::Failure, held::Place, opt::Wanted, signals::Signals};

type Granting = Pin<Box<dyn Future<Output = LockResult<Option<LockGuard>>>>>;

/// Waits for the grant, or for a signal that asks to end. After a signal, nothing is left behind. The
/// library checks that the lock can be held for `at_least`.
pub(crate) async fn granted(
    wanted: &Wanted,
    at_least: Option<Duration>,
    place: &Place,
    signals: &mut Signals,
) -> Result<Result<LockGuard, Signal>, Failure> {
    let grant = match granting(wanted, at_least, place) {
        Ok(grant) => grant,
        Err(failure) => {
            place.close().await;
            return Err(failure);
        }
    };
    let busy = format!("lock {} is busy", wanted.name);
    place.wait(&wanted.name, &wanted.terms, &busy, signals, grant).await
}

/// Makes the request. It returns `None` if the lock is busy and `--no-wait` is set.
fn granting(
    wanted: &Wanted,
    at_least: Option<Duration>,
    place: &Place,
) -> Result<Granting, Failure> {
    /// A lock and a semaphore have the same options, but no common type.
    macro_rules! grant {
        ($lock:expr) => {{
            let mut lock = $lock.ttl(place.ttl).holder(&place.me);
            #[cfg(feature = "metrics")]
            {
                // One name, so one time series more.
                lock = lock.name_in_metrics();
            }
            if let Some(limit) = wanted.terms.max_hold {
                lock = lock.max_hold(limit);
            }
            if let Some(time) = at_least {
                lock = lock.at_least(time);
            }
            if let Some(limit) = wanted.terms.wait {
                lock = lock.wait(limit);
            }
            if wanted.terms.wait_through_outages {
                lock = lock.wait_through_outages();
            }
            match wanted.terms.no_wait {
                true => Ok(Box::pin(lock.try_acquire())),
                false => Ok(Box::pin(async move { lock.acquire().await.map(Some) })),
            }
        }};
    }
    let locks = &place.locks;
    match wanted.permits {
        Some(permits) => grant!(locks.semaphore(&wanted.name, permits)?),
        None if wanted.shared => grant!(locks.shared(&wanted.name)?),
        None => grant!(locks.lock(&wanted.name)?),
    }
}
