//! A login that may be replaced while the client runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{Clock, Instant, Result, Secret, User, keep::poison::lock};

use crate::error::{Failure, FailureKind};

/// How long logins that etcd has refused are not worth another try: checking a password costs etcd
/// much. The same ones are refused without a request.
const REFUSED: Duration = Duration::from_secs(1);

/// A user and its password, which are read anew for each login.
#[derive(Clone)]
pub(crate) struct Login {
    user: User,
    secret: Secret,
    known: Arc<Mutex<Known>>,
}

/// A user and its password, as they were read together.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Pair {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// What etcd said about logins.
#[derive(Default)]
struct Known {
    accepted: Option<Pair>,
    /// The last refusal of all that there were.
    refused: Option<Refusal>,
}

/// Logins that etcd refused.
struct Refusal {
    at: Instant,
    pairs: Vec<Pair>,
    failure: Failure,
}

impl Login {
    pub(crate) fn new(user: User, secret: Secret) -> Self {
        Self { user, secret, known: Arc::default() }
    }

    /// Returns the logins to try: the current one, the one that etcd accepted last if that is
    /// another, and the current one again, since etcd may learn it between the two. The new login may
    /// be there before etcd knows it, or after, and of user and password only one may be new yet.
    /// Fails if the login cannot be read and no earlier one is known.
    pub(crate) fn pairs(&self) -> std::result::Result<Vec<Pair>, Failure> {
        let accepted = lock(&self.known).accepted.clone();
        match self.read() {
            Ok(current) => {
                let other = accepted.filter(|accepted| *accepted != current);
                let others = other.into_iter().flat_map(|other| [other, current.clone()]);
                Ok([current.clone()].into_iter().chain(others).collect())
            }
            Err(error) => match accepted {
                Some(accepted) => Ok(vec![accepted]),
                None => Err(Failure::new(FailureKind::Denied, error)),
            },
        }
    }

    pub(crate) fn accepted(&self, pair: Pair) {
        *lock(&self.known) = Known { accepted: Some(pair), refused: None };
    }

    /// Notes that etcd refused all of these logins.
    pub(crate) fn refused(&self, pairs: Vec<Pair>, failure: Failure) {
        let refusal = Refusal { at: Clock::Boot.now(), pairs, failure };
        lock(&self.known).refused = Some(refusal);
    }

    /// Returns how etcd refused all of these logins a moment ago, if it did.
    pub(crate) fn refusal(&self, pairs: &[Pair]) -> Option<Failure> {
        let (known, now) = (lock(&self.known), Clock::Boot.now());
        let refusal = known.refused.as_ref().filter(|refusal| now < refusal.at + REFUSED)?;
        let is_same = pairs.iter().all(|pair| refusal.pairs.contains(pair));
        is_same.then(|| refusal.failure.clone())
    }

    /// Whether the login may be replaced while the client runs.
    pub(crate) fn can_change(&self) -> bool {
        self.user.can_change() || self.secret.can_change()
    }

    /// Whether the login is another one than that in use, and worth a try.
    pub(crate) fn has_other(&self) -> bool {
        let Ok(pair) = self.read() else { return false };
        lock(&self.known).accepted.as_ref() != Some(&pair) && self.refusal(&[pair]).is_none()
    }

    fn read(&self) -> Result<Pair> {
        Ok(Pair { user: self.user.read()?, password: self.secret.read()? })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn pair(user: &str, password: &str) -> Pair {
        Pair { user: user.to_owned(), password: password.to_owned() }
    }

    fn read(login: &Login) -> Vec<Pair> {
        login.pairs().unwrap_or_default()
    }

    #[test]
    fn a_password_that_changes_is_tried_beside_the_one_that_worked() {
        let file = std::env::temp_dir().join(format!("lock-etcd-{}", std::process::id()));
        let (old, new) = (pair("me", "old"), pair("me", "new"));
        fs::write(&file, "old").unwrap();
        let login = Login::new("me".into(), Secret::file(&file));
        assert!(read(&login) == [old.clone()]);
        login.accepted(old.clone());
        assert!(!login.has_other());

        fs::write(&file, "new").unwrap();
        assert!(login.has_other());
        let both = read(&login);
        assert!(both == [new.clone(), old.clone(), new]);
        assert!(login.refusal(&both).is_none());
        login.refused(both.clone(), Failure::new(FailureKind::Denied, "no"));
        assert!(!login.has_other(), "it was refused a moment ago");
        assert_eq!(login.refusal(&both).unwrap().to_string(), "no");

        fs::write(&file, "newer").unwrap();
        assert!(login.has_other(), "nobody has refused this one");
        assert!(login.refusal(&read(&login)).is_none());
        fs::write(&file, "new").unwrap();
        login.accepted(old.clone());
        assert!(login.has_other(), "etcd may know it by now");

        fs::remove_file(&file).unwrap();
        assert!(read(&login) == [old], "what worked is better than nothing");
        let login = Login::new("me".into(), Secret::file(&file));
        assert_eq!(login.pairs().err().unwrap().kind, FailureKind::Denied);
    }

    #[test]
    fn a_user_that_changes_is_another_login() {
        let [user, password] = ["user", "password"]
            .map(|it| std::env::temp_dir().join(format!("lock-etcd-{it}-{}", std::process::id())));
        fs::write(&user, "one").unwrap();
        fs::write(&password, "old").unwrap();
        let login = Login::new(User::file(&user), Secret::file(&password));
        login.accepted(pair("one", "old"));
        assert!(login.can_change() && !login.has_other());
        fs::write(&user, "two").unwrap();
        let half = read(&login);
        let halves = [pair("two", "old"), pair("one", "old"), pair("two", "old")];
        assert!(login.has_other() && half == halves);
        login.refused(half, Failure::new(FailureKind::Denied, "no"));
        assert!(!login.has_other(), "half a change was refused");
        fs::write(&password, "new").unwrap();
        assert!(login.has_other() && read(&login)[0] == pair("two", "new"));
        for file in [user, password] {
            fs::remove_file(file).unwrap();
        }
        assert!(read(&login) == [pair("one", "old")]);
    }
}
