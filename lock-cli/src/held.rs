//! Work under a held lock: the common part of `run`, `hold` and `elect`.

use std::{
    convert::Infallible, ffi::OsString, future::Future, io, ops::Deref, path::Path,
    process::ExitCode, time::Duration,
};

use distlock::{Held, Locks};
use lock_core::{Clock, Instant, duration::about, this_process};
use rustix::process::Signal;

#[cfg(feature = "metrics")]
use crate::metrics;
use crate::{
    choice::Choice,
    exit::{Code, Failure, Outcome, say},
    nested,
    on_lost::{OnLost, Policy},
    opt::Terms,
    signals::Signals,
    supervise::{Job, Ready, stop_alone},
    variables, wait,
};

/// A store, and how this process locks in it.
pub(crate) struct Place {
    pub(crate) locks: Locks,
    pub(crate) ttl: Duration,
    pub(crate) policy: Policy,
    /// The description of this process in the queue.
    pub(crate) me: String,
}

impl Place {
    /// Connects, and checks that the TTL leaves room for the grace. The queue shows the command's
    /// name.
    pub(crate) async fn open(
        store: &Choice,
        terms: &Terms,
        on_lost: OnLost,
        command: &[OsString],
    ) -> Result<Self, Failure> {
        // Wrong options are refused without the store.
        if let Some(ttl) = terms.ttl {
            on_lost.fit(ttl, terms.max_hold)?;
        }
        // Before the connect, which describes them.
        #[cfg(feature = "metrics")]
        if let Some(at) = terms.metrics {
            metrics::serve(at).await?;
        }
        if !terms.quiet {
            store.say_default();
        }
        let locks = store.connect_with_others().await?;
        let ttl = terms.ttl.unwrap_or(locks.guarantees().default_ttl);
        locks.guarantees().check_ttl(ttl)?;
        let policy = on_lost.fit(ttl, terms.max_hold)?;
        // A leaked handle: the end of the process closes SQLite's file sooner than the last handle
        // would.
        std::mem::forget(locks.clone());
        let me = match command.first().and_then(|path| Path::new(path).file_name()) {
            Some(program) => format!("{}, runs {}", this_process(), program.display()),
            None => this_process().to_string(),
        };
        Ok(Self { locks, ttl, policy, me })
    }

    /// Waits for a grant, or for a signal that asks to end. After a signal, nothing is left behind.
    /// `busy` says that there is no grant without a wait.
    pub(crate) async fn wait<G>(
        &self,
        name: &str,
        terms: &Terms,
        busy: &str,
        signals: &mut Signals,
        grant: impl Future<Output = distlock::Result<Option<G>>>,
    ) -> Result<Result<G, Signal>, Failure> {
        let granted = tokio::select! {
            granted = wait::shown(&self.locks, name, &self.me, terms.quiet, grant) => granted,
            signal = signals.end() => {
                self.close().await;
                return Ok(Err(signal));
            }
        };
        let failure: Failure = match granted {
            Ok(Some(grant)) => return Ok(Ok(grant)),
            Ok(None) => {
                let holder = wait::blame(&self.locks, name).await;
                Failure::new(Code::Busy, format!("{busy}{holder}"))
            }
            Err(error) => error.into(),
        };
        self.close().await;
        Err(failure.when_busy(terms.busy_code, terms.quiet))
    }

    /// Releases everything. Only prints an error: the command's exit code counts.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.locks.close().await {
            say(format_args!("what was held is free after its TTL: {error}"));
        }
    }
}

/// Runs a command under the held lock, and then releases the lock. Before the release, it calls
/// `succeeded` if the command did, and was not asked to end, by a signal or because of the lock. If
/// that returns false, the lock is not released, but expires.
pub(crate) async fn run<G: Deref<Target = Held>>(
    place: &Place,
    grant: G,
    command: Ready,
    store: &Choice,
    at_least: Option<Duration>,
    succeeded: impl AsyncFnOnce(&G, &mut Signals) -> bool,
    signals: &mut Signals,
) -> Result<ExitCode, Failure> {
    let granted = Clock::Boot.now();
    let held: &Held = &grant;
    let until = granted + held.remaining();
    let held_now = nested::with(store, held.name().as_str(), held.kind());
    let environment = [
        (variables::NAME, held.name().to_string()),
        (variables::TOKEN, held.token().to_string()),
        (variables::DEADLINE, until.since(Instant::default()).as_millis().to_string()),
        (variables::STORE, store.public()),
        (variables::HELD, held_now),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let job = Job { environment, policy: place.policy, ttl: place.ttl };
    let outcome = tokio::select! {
        outcome = command.run(held, job, signals) => outcome,
        never = warn(held, place.policy) => match never {},
        never = tell_of_risk(held, place.ttl) => match never {},
    };
    let outcome = outcome.map_err(Failure::system("starting the command"));
    if let Ok(Outcome { code: Some(0), signalled: false, lost: false, .. }) = &outcome
        && !succeeded(&grant, &mut *signals).await
    {
        std::mem::forget(grant);
        return outcome?.exit();
    }
    if let (Ok(Outcome { lost: false, asked: false, .. }), Some(at_least)) = (&outcome, at_least)
        && let Err(error) = linger(held, granted + at_least, signals).await
    {
        say(format_args!("the lock is not held for as long as --at-least asks: {error}"));
    }
    place.close().await;
    outcome?.exit()
}

/// Messages of a program that only holds.
pub(crate) struct Words {
    pub(crate) saying: &'static str,
    pub(crate) lost: &'static str,
}

/// Keeps the hold that was announced on stdout, without a command, until a signal asks to end.
pub(crate) async fn until_asked<G: Deref<Target = Held>>(
    place: &Place,
    grant: G,
    announced: io::Result<()>,
    words: &Words,
    signals: &mut Signals,
) -> Result<ExitCode, Failure> {
    // The line is the only result: if it cannot be written, the hold is of no use.
    if let Err(error) = announced {
        place.close().await;
        return Err(Failure::system(words.saying)(error));
    }
    let code = tokio::select! {
        reason = grant.lost() => {
            // Before closing, which waits for the store: it may be out of reach.
            say(format_args!("{}: {reason}", words.lost));
            Code::Lost.into()
        }
        _ = signals.end() => ExitCode::SUCCESS,
        never = tell_of_risk(&grant, place.ttl) => match never {},
    };
    place.close().await;
    Ok(code)
}

/// Reports a command that outlives its lock.
async fn warn(held: &Held, policy: Policy) -> Infallible {
    if policy.ignore {
        let reason = held.lost().await;
        say(format_args!("the lock was lost and the command goes on: {reason}"));
    }
    std::future::pending().await
}

/// Says when the store does not confirm renewals, and when it does again.
async fn tell_of_risk(held: &Held, ttl: Duration) -> Infallible {
    loop {
        let left = held.at_risk().await;
        say(format_args!(
            "the store does not confirm renewals: {} is lost in {} unless it answers",
            held.name(),
            about(left)
        ));
        while held.is_at_risk() {
            tokio::time::sleep(ttl / 20).await;
        }
        if !held.is_valid() {
            // The loss is told elsewhere.
            return std::future::pending().await;
        }
        say(format_args!("the store has renewed {}", held.name()));
    }
}

/// Holds on until the lock was held long enough, is lost, or a signal asks to end.
async fn linger(held: &Held, until: Instant, signals: &mut Signals) -> io::Result<()> {
    let mut keys = Signals::of_jobs()?;
    loop {
        tokio::select! {
            // A loss at a later time does not count.
            biased;
            () = Clock::Boot.sleep_until(until) => return Ok(()),
            reason = held.lost() => {
                say(format_args!("the lock was not held for as long as --at-least asks: {reason}"));
                return Ok(());
            }
            _ = signals.end() => return Ok(()),
            key = keys.next() => if key == Signal::TSTP {
                stop_alone();
            }
        }
    }
}
