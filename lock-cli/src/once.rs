//! `run --once-per`: work that is done already is not done again.

use std::{process::ExitCode, time::Duration};

use distlock::{LockGuard, Mark};
use lock_core::{Clock, Instant};
use tokio::time::timeout;

use crate::{
    exit::{Failure, by_signal, say},
    held::Place,
    marks,
    opt::Run,
    signals::Signals,
};

/// The longest look for a mark before the wait.
const LOOK: Duration = Duration::from_secs(1);

/// Looks for a mark before the wait, which it spares. If the store does not tell, the look after
/// the grant counts. Returns how the program ends without the command, if it does: by a mark, or a
/// signal that asks to end.
pub(crate) async fn before_the_wait(
    opt: &Run,
    place: &Place,
    signals: &mut Signals,
) -> Result<Option<ExitCode>, Failure> {
    let Some(period) = opt.once_per else { return Ok(None) };
    if let Err(error) = place.locks.guarantees().check_period(period) {
        place.close().await;
        return Err(error.into());
    }
    let looked = tokio::select! {
        looked = timeout(LOOK, place.locks.mark(&opt.wanted.name)) => looked,
        signal = signals.end() => {
            place.close().await;
            return Ok(Some(by_signal(signal)));
        }
    };
    match looked {
        Ok(Ok(Some(mark))) => Ok(Some(done_already(opt, place, &mark).await)),
        _ => Ok(None),
    }
}

/// The same under the lock: now it counts that there is none.
pub(crate) async fn after_the_grant(
    opt: &Run,
    place: &Place,
    guard: &LockGuard,
    signals: &mut Signals,
) -> Result<Option<ExitCode>, Failure> {
    if opt.once_per.is_none() {
        return Ok(None);
    }
    let mark = tokio::select! {
        mark = guard.mark() => mark,
        signal = signals.end() => {
            place.close().await;
            return Ok(Some(by_signal(signal)));
        }
    };
    match mark {
        Ok(None) => Ok(None),
        Ok(Some(mark)) => Ok(Some(done_already(opt, place, &mark).await)),
        Err(error) => {
            place.close().await;
            Err(error.into())
        }
    }
}

async fn done_already(opt: &Run, place: &Place, mark: &Mark) -> ExitCode {
    if !opt.wanted.terms.quiet {
        say(marks::done(mark));
    }
    place.close().await;
    ExitCode::SUCCESS
}

/// Marks the work as done, and returns when the store has answered, or the lock is lost. Returns
/// false if a signal asks to end before: then the lock must not be released, as a mark may be on its
/// way.
pub(crate) async fn mark(
    guard: &LockGuard,
    granted: Instant,
    period: Duration,
    signals: &mut Signals,
) -> bool {
    if Clock::Boot.now().since(granted) >= period {
        say("the period was over before the work was done: no mark");
        return true;
    }
    let marked = tokio::select! {
        // No mark is sent after a signal.
        biased;
        _ = signals.end() => {
            say("asked to end before the work is marked as done: the lock expires, and the next \
                 run may do the work again");
            return false;
        }
        marked = guard.mark_done(period) => marked,
    };
    if let Err(error) = marked {
        say(format_args!(
            "the work may be done again: the store has not confirmed that it is done: {error}"
        ));
    }
    true
}
