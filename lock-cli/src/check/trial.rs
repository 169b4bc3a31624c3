//! Plays the checks.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use distlock::Error;
use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use lock_core::{
    Clock,
    duration::shown,
    properties::{self, Check, Checked, Late, Missed, Outcome, Property},
};
use tokio::time::{sleep, timeout};

use super::{harness::StoreHarness, target::Target};
use crate::exit::{Code, Failure};

/// Number of checks at a time: most of them wait for a TTL, and the store is in use.
const AT_ONCE: usize = 4;
/// Longest time for all of them together.
const LIMIT: Duration = Duration::from_secs(180);
/// A store or a machine with a slower reply cannot be judged by promises about time, which are a
/// second or two.
const SLOW: Duration = Duration::from_millis(500);
/// Time between two measurements of a reply during a check.
const PULSE: Duration = Duration::from_millis(500);

/// The end of all checks.
pub(super) struct Played {
    pub(super) checks: Vec<Ended>,
    /// Whether the store has stopped answering, so that the rest was not checked.
    pub(super) gone: bool,
    /// What weakens locks in this store.
    pub(super) cautions: Vec<String>,
    /// Why no client was cut off; `None` if they were.
    pub(super) uncut: Option<String>,
}

/// The end of one check.
pub(super) struct Ended {
    pub(super) property: &'static Property,
    pub(super) check: Check,
    pub(super) verdict: Verdict,
    /// The failure of a first try, if the verdict is that of a second one.
    pub(super) first_try: Option<String>,
}

pub(super) enum Verdict {
    Kept,
    /// The event that broke it.
    Broken(String),
    /// The reason.
    NotChecked(String),
    /// The check could not be completed.
    Failed(Failure),
}

/// Plays the checks of these properties, or of all if none is named. `shown` names the store in the
/// progress.
pub(super) async fn play(target: &Arc<Target>, shown: &str, wanted: &[String]) -> Played {
    let mut trials: Vec<_> = properties::all()
        .iter()
        .filter(|property| wanted.is_empty() || wanted.iter().any(|name| name == property.name))
        .flat_map(|property| property.checks.iter().map(move |check| (property, *check)))
        .map(|(property, check)| Trial { property, check, verdict: None, first_try: None })
        .collect();
    let progress = progress(trials.len(), shown);
    let checks: Vec<_> = trials.iter().map(|trial| trial.check).enumerate().collect();
    let mut running = stream::iter(checks)
        .map(|(number, check)| async move { (number, one(target, number, check).await) })
        .buffer_unordered(AT_ONCE);
    let all = async {
        while let Some((number, verdict)) = running.next().await {
            trials[number].verdict = Some(verdict);
            progress.inc(1);
            if target.is_gone() {
                return;
            }
        }
        once_more(target, &mut trials).await;
    };
    // An unfinished check gets its verdict below.
    let _ = timeout(LIMIT, all).await;
    progress.finish_and_clear();
    let gone = target.is_gone();
    let checks = trials.into_iter().map(|trial| trial.ended(gone)).collect();
    let cautions = target.driver.guarantees().cautions.iter().chain(&target.lacking);
    let cautions = cautions.cloned().collect();
    Played { checks, gone, cautions, uncut: target.uncut().map(str::to_owned) }
}

/// A check that may not have ended yet.
struct Trial {
    property: &'static Property,
    check: Check,
    verdict: Option<Verdict>,
    first_try: Option<String>,
}

impl Trial {
    fn ended(self, gone: bool) -> Ended {
        let Self { property, check, verdict, first_try } = self;
        let verdict = verdict.unwrap_or_else(|| if gone { too_late() } else { out_of_time() });
        Ended { property, check, verdict, first_try }
    }
}

/// Plays failed checks once more, alone: they may have been in each other's way. Does nothing if a
/// promise is broken: then enough is known.
async fn once_more(target: &Arc<Target>, trials: &mut [Trial]) {
    let broken = trials.iter().any(|trial| matches!(trial.verdict, Some(Verdict::Broken(_))));
    if broken || target.ping().await.is_err() {
        return;
    }
    let played = trials.len();
    for (number, trial) in trials.iter_mut().enumerate() {
        let Some(Verdict::Failed(failure)) = &trial.verdict else { continue };
        let first_try = failure.to_string();
        trial.verdict = Some(one(target, played + number, trial.check).await);
        trial.first_try = Some(first_try);
        if target.is_gone() {
            return;
        }
    }
}

fn too_late() -> Verdict {
    Verdict::NotChecked("the store went away".to_owned())
}

fn out_of_time() -> Verdict {
    Verdict::Failed(Failure::new(Code::TimedOut, format!("not done after {}", shown(LIMIT))))
}

/// A line on a terminal; nothing elsewhere.
fn progress(checks: usize, store: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{elapsed:>4} [{bar:20}] {pos} of {len} checks of {wide_msg}");
    let bar = ProgressBar::new(checks as u64);
    bar.set_style(style.expect("a template that is tested").progress_chars("=> "));
    bar.set_message(store.to_owned());
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

async fn one(target: &Arc<Target>, number: usize, check: Check) -> Verdict {
    let harness = StoreHarness::new(target, number);
    let mut trouble = None;
    let checked = tokio::select! {
        // After a standstill, both are due.
        biased;
        never = watch(target, &mut trouble) => match never {},
        checked = check.run(&harness) => checked,
    };
    judge(target, checked, trouble).await
}

/// Notes when the store or this machine was out of reach or slow during a check.
async fn watch(target: &Target, trouble: &mut Option<String>) -> Infallible {
    loop {
        match target.answer().await {
            Ok(took) if took > SLOW => *trouble = Some(format!("an answer took {took:.1?}")),
            Ok(_) => {}
            Err(failure) => *trouble = Some(failure.to_string()),
        }
        let slept = Clock::Boot.now();
        sleep(PULSE).await;
        let late = Clock::Boot.now().since(slept).saturating_sub(PULSE);
        if late > SLOW {
            *trouble = Some(format!("this machine stood still for {late:.1?}"));
        }
    }
}

/// Decides whether a failure is the store's fault.
async fn judge(target: &Target, checked: Checked, trouble: Option<String>) -> Verdict {
    match checked {
        Ok(Outcome::Skipped(why)) => Verdict::NotChecked(why),
        Ok(_) => Verdict::Kept,
        Err(failure) if !could_be_an_outage(&failure) => Verdict::Broken(failure.to_string()),
        Err(failure) => match target.ping().await {
            Ok(()) => weigh(failure, trouble, target.is_native()),
            Err(gone) => {
                Verdict::Failed(Failure::new(gone.code(), format!("{failure}; then {gone}")))
            }
        },
    }
}

/// Decides about a failure at a store that replies, with the trouble of the time of the check.
fn weigh(failure: properties::Failure, trouble: Option<String>, native: bool) -> Verdict {
    match trouble {
        Some(why) if is_about_time(&failure) => {
            let why = format!("{failure}; meanwhile {why}");
            Verdict::Failed(Failure::new(Code::TimedOut, why))
        }
        _ => blame(failure, native),
    }
}

/// Whether a store or a machine that is slow could cause the failure. A holder that does not run
/// loses its lock in any store.
fn is_about_time(failure: &properties::Failure) -> bool {
    failure.is::<Missed>() || failure.downcast_ref::<Error>().is_some_and(Error::is_lost)
}

/// Whether an outage could cause the failure. It cannot cause two holders at once.
fn could_be_an_outage(failure: &properties::Failure) -> bool {
    failure.is::<Late>()
        || failure.is::<Missed>()
        || failure.is::<Error>()
        || failure.is::<io::Error>()
}

/// Judges a failure at a store that replies. A failed call proves nothing, unless it reports the
/// loss of a lock that was not taken away, or refuses a valid name. An error of this machine
/// proves nothing either.
fn blame(failure: properties::Failure, native: bool) -> Verdict {
    let failed = |code| Verdict::Failed(Failure::new(code, failure.to_string()));
    if failure.is::<Late>() {
        return failed(Code::TimedOut);
    }
    if failure.is::<io::Error>() {
        return failed(Code::System);
    }
    match failure.downcast::<Error>().map(|error| *error) {
        // Its layout has no such names.
        Ok(error @ Error::InvalidName { .. }) if native => Verdict::NotChecked(error.to_string()),
        Ok(error @ (Error::Lost { .. } | Error::InvalidName { .. })) => {
            Verdict::Broken(error.to_string())
        }
        Ok(error) => Verdict::Failed(error.into()),
        Err(failure) => Verdict::Broken(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use distlock::{LockName, LossReason};

    use super::*;

    #[test]
    fn the_progress_has_a_template() {
        progress(1, "a store").finish_and_clear();
    }

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Kept => "kept",
            Verdict::Broken(_) => "broken",
            Verdict::NotChecked(_) => "not checked",
            Verdict::Failed(failure) if failure.code() == Code::System => "system",
            Verdict::Failed(_) => "failed",
        }
    }

    #[test]
    fn each_failure_gets_its_verdict() {
        let name = LockName::new("n").unwrap();
        let lost = || Error::Lost { name: name.clone(), reason: LossReason::EntryGone };
        let no_name = || LockName::new("").unwrap_err();
        let closed = Error::closed("a store");
        let failures: [(properties::Failure, bool, &str); 7] = [
            ("two holders".into(), false, "broken"),
            (Missed("a grant".to_owned()).into(), true, "broken"),
            (Late("an answer".to_owned()).into(), true, "failed"),
            (lost().into(), true, "broken"),
            (no_name().into(), true, "broken"),
            (closed.into(), true, "failed"),
            (io::Error::from_raw_os_error(24).into(), true, "system"),
        ];
        for (failure, outage, expected) in failures {
            assert_eq!(could_be_an_outage(&failure), outage, "{failure}");
            assert_eq!(word(&weigh(failure, None, false)), expected);
        }
        assert_eq!(word(&blame(no_name().into(), true)), "not checked");
    }

    /// As on a machine without a processor for it.
    #[test]
    fn a_slow_store_or_machine_breaks_no_promise_about_time() {
        let name = LockName::new("n").unwrap();
        let lost = Error::Lost { name, reason: LossReason::Expired };
        let slow = || Some("this machine stood still for 2.0s".to_owned());
        let missed = Missed("a grant".to_owned());
        for failure in [lost.into(), missed.into()] as [properties::Failure; 2] {
            match weigh(failure, slow(), false) {
                Verdict::Failed(why) => assert!(why.to_string().contains("meanwhile this machine")),
                verdict => panic!("{}", word(&verdict)),
            }
        }
        let no_name = LockName::new("").unwrap_err();
        assert_eq!(word(&weigh(no_name.into(), slow(), false)), "broken");
    }
}
