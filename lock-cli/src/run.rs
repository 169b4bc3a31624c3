//! `distlock run`: a command under a lock.

use std::{future::Future, pin::Pin, process::ExitCode};

use distlock::{LockGuard, Result as LockResult};

use crate::{
    choice::Choice,
    exit::{Code, Failure},
    hold::{self, Place},
    opt::Run,
    signals::Signals,
    supervise::Ready,
};

type Granting = Pin<Box<dyn Future<Output = LockResult<Option<LockGuard>>>>>;

pub(crate) async fn run(opt: &Run, store: &Choice) -> Result<ExitCode, Failure> {
    let command = Ready::start(&opt.command).map_err(Failure::system("starting the command"))?;
    let mut signals = Signals::listen().map_err(Failure::system("listening for signals"))?;
    let place = Place::open(store, &opt.hold, &opt.command).await?;
    let grant = granting(opt, &place)?;
    let guard = match place.wait(&opt.name, opt.hold.quiet, &mut signals, grant).await? {
        Ok(Some(guard)) => guard,
        Ok(None) => {
            place.close().await;
            return Err(Failure::new(Code::Busy, format!("lock {} is busy", opt.name)));
        }
        Err(signal) => return Ok(hold::by_signal(signal)),
    };
    hold::run(&place, guard, command, store, opt.at_least, &mut signals).await
}

/// The lock or the permit on its way; `None` if it is busy and nobody wants to wait.
fn granting(opt: &Run, place: &Place) -> Result<Granting, Failure> {
    /// A lock and a semaphore have the same options, but no common type.
    macro_rules! grant {
        ($lock:expr) => {{
            let mut lock = $lock.ttl(place.ttl).holder(&place.me);
            if let Some(limit) = opt.hold.max_hold {
                lock = lock.max_hold(limit);
            }
            if let Some(limit) = opt.hold.wait {
                lock = lock.wait(limit);
            }
            match opt.hold.no_wait {
                true => Ok(Box::pin(lock.try_acquire())),
                false => Ok(Box::pin(async move { lock.acquire().await.map(Some) })),
            }
        }};
    }
    let locks = &place.locks;
    match opt.permits {
        Some(permits) => grant!(locks.semaphore(&opt.name, permits)?),
        None if opt.shared => grant!(locks.shared(&opt.name)?),
        None => grant!(locks.lock(&opt.name)?),
    }
}
