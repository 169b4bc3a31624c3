//! What a host has answered to logins, and how many may be tried at once.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Mutex,
    time::Duration,
};

use lock_core::{Clock, Instant, keep::poison::lock};
use tokio::{sync::Notify, time::timeout};

/// Pause after a refused login with the same options: it doubles up to the longest. A server may
/// lock an account after many refusals. Short beside a TTL: the server may accept the login soon,
/// where the password in a file is changed first.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Longest wait for the outcome of another login. A host that is silent, or slow to refuse, then
/// gets one more. Short beside the limits of connections, which count this wait: 1 s by default.
const PATIENCE: Duration = Duration::from_millis(200);

/// What one host has answered to logins.
///
/// The first login of a burst goes alone, and the others wait for its outcome: if the password was
/// changed, the host refuses one login, not ten. Then they go at once, so a burst of connections
/// takes the time of one login more. Logins that all went one by one would take ten times as long.
pub(crate) struct Logins<O> {
    state: Mutex<State<O>>,
    /// Rings when a login has ended.
    ended: Notify,
}

struct State<O> {
    /// Logins that have begun and not ended.
    under_way: usize,
    /// When the last one has begun.
    begun: Instant,
    /// The options with which a login has led to a connection, while logins are under way.
    proven: Option<u64>,
    /// The options that the host accepted last.
    accepted: Option<O>,
    refused: Option<Refused>,
}

/// The last refusal of the options that were current then, or that there was no answer in time.
struct Refused {
    options: u64,
    until: Instant,
    pause: Duration,
    /// `None` if there was no answer.
    why: Option<String>,
}

/// A login that is under way, until this is dropped.
pub(super) struct Login<'a, O> {
    logins: &'a Logins<O>,
    options: O,
}

impl<O> Default for Logins<O> {
    fn default() -> Self {
        let state = State {
            under_way: 0,
            begun: Instant::default(),
            proven: None,
            accepted: None,
            refused: None,
        };
        Self { state: Mutex::new(state), ended: Notify::new() }
    }
}

impl<O: Clone + std::fmt::Debug> Logins<O> {
    /// Waits until a login may begin. `read` returns the current options, which may change while it
    /// waits.
    pub(super) async fn begin<E>(
        &self,
        read: impl Fn() -> Result<O, E>,
    ) -> Result<Login<'_, O>, E> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            let options = read()?;
            match self.try_begin(hash(&options), Clock::Boot.now()) {
                Ok(()) => return Ok(Login { logins: self, options }),
                Err(wait) => drop(timeout(wait, ended).await),
            }
        }
    }

    /// The options that the host accepted last.
    #[cfg(feature = "postgres")]
    pub(super) fn last_accepted(&self) -> Option<O> {
        lock(&self.state).accepted.clone()
    }

    /// Begins a login, or returns how long to wait for another one at the most.
    fn try_begin(&self, options: u64, now: Instant) -> Result<(), Duration> {
        let mut state = lock(&self.state);
        let end = state.begun + PATIENCE;
        if state.under_way > 0 && state.proven != Some(options) && now < end {
            return Err(end.since(now));
        }
        (state.under_way, state.begun) = (state.under_way + 1, now);
        Ok(())
    }
}

impl<O: Clone + std::fmt::Debug> Login<'_, O> {
    /// The options to try, in this order: the current ones, the ones that the host accepted last, if
    /// they are others, and the current ones again: the host may learn a new password between the
    /// two. A new password may be in a file before the host knows it, or after. Current ones that
    /// failed a moment ago are only tried if the host refuses the others, too. Fails with the reason
    /// why the host refused the current ones, if there are no others.
    pub(super) fn options(&self) -> Result<Vec<O>, String> {
        let (current, now) = (hash(&self.options), Clock::Boot.now());
        let mut state = lock(&self.logins.state);
        let other = state.accepted.clone().filter(|accepted| hash(accepted) != current);
        let mut list = vec![self.options.clone()];
        list.extend(other.into_iter().flat_map(|other| [other, self.options.clone()]));
        match state.refused.as_mut().filter(|last| last.options == current) {
            // Logins that begin before this one ends do not repeat it.
            Some(last) if now >= last.until => last.until = now + last.pause,
            Some(_) if list.len() > 1 => drop(list.remove(0)),
            Some(Refused { why: Some(why), .. }) => return Err(why.clone()),
            _ => {}
        }
        Ok(list)
    }

    /// Notes that the host has accepted these options.
    pub(super) fn accepted(&self, options: &O) {
        let current = hash(&self.options);
        let mut state = lock(&self.logins.state);
        state.proven = Some(current);
        if hash(options) == current {
            (state.accepted, state.refused) = (Some(options.clone()), None);
        }
    }

    /// Notes that the host has not answered in the part of the limit that the current options have.
    /// For one limit the others come first, and have all of it.
    pub(super) fn unanswered(&self, limit: Duration) {
        let (options, pause) = (hash(&self.options), limit.max(PAUSE));
        let until = Clock::Boot.now() + pause;
        lock(&self.logins.state).refused = Some(Refused { options, until, pause, why: None });
    }

    /// Notes that the host has refused these options.
    pub(super) fn refused(&self, options: &O, why: String) {
        let (current, options) = (hash(&self.options), hash(options));
        let mut state = lock(&self.logins.state);
        state.proven = None;
        state.accepted.take_if(|accepted| hash(accepted) == options);
        if options != current {
            // The host has another password now, perhaps the current one: what it said before is no
            // answer to the logins that run beside this one.
            state.refused = None;
            return;
        }
        let last = state.refused.as_ref().filter(|last| last.options == options);
        let pause = last.map_or(PAUSE, |last| (last.pause * 2).min(LONGEST_PAUSE));
        let until = Clock::Boot.now() + pause;
        state.refused = Some(Refused { options, until, pause, why: Some(why) });
    }
}

impl<O> Drop for Login<'_, O> {
    fn drop(&mut self) {
        let mut state = lock(&self.logins.state);
        state.under_way -= 1;
        if state.under_way == 0 {
            state.proven = None;
        }
        drop(state);
        self.logins.ended.notify_waiters();
    }
}

/// The library's options show everything, also the password.
pub(super) fn hash(options: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{options:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn login<'a>(
        logins: &'a Logins<&'static str>,
        now: &'static str,
    ) -> Login<'a, &'static str> {
        logins.begin(|| Ok::<_, String>(now)).await.unwrap()
    }

    #[tokio::test]
    async fn what_worked_is_tried_beside_what_is_new() {
        let logins = Logins::default();
        let first = login(&logins, "old").await;
        assert_eq!(first.options().unwrap(), ["old"]);
        first.accepted(&"old");
        drop(first);
        let next = login(&logins, "new").await;
        assert_eq!(next.options().unwrap(), ["new", "old", "new"]);
        next.refused(&"new", "no".to_owned());
        next.accepted(&"old");
        drop(next);
        let next = login(&logins, "new").await;
        assert_eq!(next.options().unwrap(), ["old", "new"], "a moment ago");
        next.refused(&"old", "no".to_owned());
        assert_eq!(next.options().unwrap(), ["new"], "the host may have learned it since");
        next.refused(&"new", "no".to_owned());
        assert_eq!(next.options().unwrap_err(), "no");
        drop(next);
        assert_eq!(login(&logins, "newer").await.options().unwrap(), ["newer"]);
    }

    #[tokio::test]
    async fn a_silent_host_is_not_taken_for_one_that_refuses() {
        let logins = Logins::default();
        login(&logins, "old").await.accepted(&"old");
        let next = login(&logins, "new").await;
        assert_eq!(next.options().unwrap(), ["new", "old", "new"]);
        next.unanswered(PAUSE);
        drop(next);
        let next = login(&logins, "new").await;
        assert_eq!(next.options().unwrap(), ["old", "new"], "a moment ago");
        next.refused(&"old", "no".to_owned());
        assert_eq!(next.options().unwrap(), ["new"]);
    }

    #[tokio::test]
    async fn a_login_that_hangs_leaves_time_to_the_others() {
        let logins = Logins::default();
        let _hangs = login(&logins, "one").await;
        // Half of the shortest limit of a connection, unless the configuration names another one.
        let others = timeout(Duration::from_millis(500), login(&logins, "one")).await;
        assert!(others.is_ok());
    }

    #[test]
    fn the_first_of_a_burst_goes_alone() {
        let (logins, now) = (Logins::<&str>::default(), Clock::Boot.now());
        let (one, other) = (hash(&"one"), hash(&"other"));
        logins.try_begin(one, now).unwrap();
        let first = Login { logins: &logins, options: "one" };
        assert_eq!(logins.try_begin(one, now), Err(PATIENCE));
        first.accepted(&"one");
        logins.try_begin(one, now).unwrap();
        let second = Login { logins: &logins, options: "one" };
        assert!(logins.try_begin(other, now).is_err(), "another password");
        second.refused(&"one", "no".to_owned());
        assert!(logins.try_begin(one, now).is_err(), "the password has changed");
        // A host that does not answer.
        logins.try_begin(one, now + PATIENCE).unwrap();
        assert!(logins.try_begin(one, now + PATIENCE).is_err());
    }
}
