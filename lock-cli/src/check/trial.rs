//! Plays the checks.

use std::{sync::Arc, time::Duration};

use distlock::Error;
use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use lock_core::properties::{self, Check, Checked, Late, Outcome, Property};
use tokio::time::timeout;

use super::{room::Room, site::Site};
use crate::exit::{Code, Failure};

/// How many checks run at a time: most of them wait for a TTL, and the store is in use.
const AT_ONCE: usize = 4;
/// How long all of them may take together.
const LIMIT: Duration = Duration::from_secs(180);

/// How a check ended.
pub(super) struct Ended {
    pub(super) property: &'static Property,
    pub(super) check: Check,
    pub(super) verdict: Verdict,
}

pub(super) enum Verdict {
    Kept,
    /// What happened instead.
    Broken(String),
    /// Why not.
    NotChecked(String),
    /// The check did not come to its end.
    Failed(Failure),
}

/// Plays the checks of these properties, or of all if none is named; `store` is what people call it.
pub(super) async fn play(site: &Arc<Site>, store: &str, wanted: &[String]) -> Vec<Ended> {
    let mut trials: Vec<_> = properties::all()
        .iter()
        .filter(|property| wanted.is_empty() || wanted.iter().any(|name| name == property.name))
        .flat_map(|property| property.checks.iter().map(move |check| (property, *check)))
        .map(|(property, check)| Ended { property, check, verdict: out_of_time() })
        .collect();
    let progress = progress(trials.len(), store);
    let checks: Vec<_> = trials.iter().map(|trial| trial.check).enumerate().collect();
    let mut running = stream::iter(checks)
        .map(|(number, check)| async move { (number, one(site, number, check).await) })
        .buffer_unordered(AT_ONCE);
    let all = async {
        while let Some((number, verdict)) = running.next().await {
            trials[number].verdict = verdict;
            progress.inc(1);
        }
        once_more(site, &mut trials).await;
    };
    // What is not done then says so.
    let _ = timeout(LIMIT, all).await;
    progress.finish_and_clear();
    trials
}

/// What did not come to its end may have been in the way of the others: once more, alone. Where a promise
/// is broken, enough is known.
async fn once_more(site: &Arc<Site>, trials: &mut [Ended]) {
    let broken = trials.iter().any(|trial| matches!(trial.verdict, Verdict::Broken(_)));
    if broken || site.ping().await.is_err() {
        return;
    }
    let rooms = trials.len();
    for (number, trial) in trials.iter_mut().enumerate() {
        if matches!(trial.verdict, Verdict::Failed(_)) {
            trial.verdict = one(site, rooms + number, trial.check).await;
        }
    }
}

fn out_of_time() -> Verdict {
    Verdict::Failed(Failure::new(Code::TimedOut, format!("not done after {LIMIT:?}")))
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

async fn one(site: &Arc<Site>, number: usize, check: Check) -> Verdict {
    let room = Room::new(site, number);
    judge(site, check.run(&room).await).await
}

/// What is the store's fault, and what is not.
async fn judge(site: &Site, checked: Checked) -> Verdict {
    let failure = match checked {
        Ok(Outcome::Skipped(why)) => return Verdict::NotChecked(why),
        Ok(_) => return Verdict::Kept,
        Err(failure) => failure,
    };
    if let Err(failure) = site.ping().await {
        return Verdict::Failed(failure);
    }
    if failure.is::<Late>() {
        return Verdict::Failed(Failure::new(Code::TimedOut, failure.to_string()));
    }
    match failure.downcast::<Error>() {
        Ok(error) => blame(*error),
        Err(failure) => Verdict::Broken(failure.to_string()),
    }
}

/// A call that failed proves nothing, unless it says that a lock was lost that nobody had taken away.
fn blame(error: Error) -> Verdict {
    match error {
        Error::Lost { .. } => Verdict::Broken(error.to_string()),
        // The layout of this URL has no such names.
        Error::InvalidName { .. } => Verdict::NotChecked(error.to_string()),
        error => Verdict::Failed(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_progress_has_a_template() {
        super::progress(1, "a store").finish_and_clear();
    }
}
