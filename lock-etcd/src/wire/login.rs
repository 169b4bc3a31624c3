//! A login whose password may be replaced while the client runs.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{Clock, Instant, Secret, keep::poison::lock};

use crate::error::{Failure, FailureKind};

/// How long passwords that etcd has refused are not worth another login: checking one costs etcd
/// much. The same ones are refused without a request.
const REFUSED: Duration = Duration::from_secs(1);

/// A user, and the password that is read anew for each login.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) user: String,
    secret: Secret,
    known: Arc<Mutex<Known>>,
}

/// What etcd said about passwords.
#[derive(Default)]
struct Known {
    accepted: Option<String>,
    /// The last refusal of all that there were.
    refused: Option<Refusal>,
}

/// A login that etcd refused.
struct Refusal {
    at: Instant,
    passwords: Vec<String>,
    failure: Failure,
}

impl Login {
    pub(crate) fn new(user: String, secret: Secret) -> Self {
        Self { user, secret, known: Arc::default() }
    }

    /// Returns the passwords to try: the current one, and the one that etcd accepted last if that
    /// is another. The new password may be there before etcd knows it, or after.
    ///
    /// # Errors
    ///
    /// The reason why the password cannot be read and no earlier one is known.
    pub(crate) fn passwords(&self) -> Result<Vec<String>, Failure> {
        let accepted = lock(&self.known).accepted.clone();
        match self.secret.read() {
            Ok(current) => {
                let other = accepted.filter(|accepted| *accepted != current);
                Ok([current].into_iter().chain(other).collect())
            }
            Err(error) => match accepted {
                Some(accepted) => Ok(vec![accepted]),
                None => Err(Failure::new(FailureKind::Denied, error)),
            },
        }
    }

    pub(crate) fn accepted(&self, password: String) {
        *lock(&self.known) = Known { accepted: Some(password), refused: None };
    }

    /// Notes that etcd refused all of these passwords.
    pub(crate) fn refused(&self, passwords: Vec<String>, failure: Failure) {
        let refusal = Refusal { at: Clock::Boot.now(), passwords, failure };
        lock(&self.known).refused = Some(refusal);
    }

    /// Returns how etcd refused all of these passwords a moment ago, if it did.
    pub(crate) fn refusal(&self, passwords: &[String]) -> Option<Failure> {
        let (known, now) = (lock(&self.known), Clock::Boot.now());
        let refusal = known.refused.as_ref().filter(|refusal| now < refusal.at + REFUSED)?;
        let is_same = passwords.iter().all(|password| refusal.passwords.contains(password));
        is_same.then(|| refusal.failure.clone())
    }

    /// Whether the password may be replaced while the client runs.
    pub(crate) fn can_change(&self) -> bool {
        self.secret.can_change()
    }

    /// Whether the password is another one than that in use, and worth a try.
    pub(crate) fn has_other_password(&self) -> bool {
        let Ok(password) = self.secret.read() else { return false };
        lock(&self.known).accepted.as_ref() != Some(&password)
            && self.refusal(&[password]).is_none()
    }
}

/// The password is hidden.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Login").field(&self.user).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_that_changes_is_tried_beside_the_one_that_worked() {
        let file = std::env::temp_dir().join(format!("lock-etcd-{}", std::process::id()));
        fs::write(&file, "old").unwrap();
        let login = Login::new("me".to_owned(), Secret::file(&file));
        assert_eq!(login.passwords().unwrap(), ["old"]);
        login.accepted("old".to_owned());
        assert!(!login.has_other_password());

        fs::write(&file, "new").unwrap();
        assert!(login.has_other_password());
        assert_eq!(login.passwords().unwrap(), ["new", "old"]);
        let both = login.passwords().unwrap();
        assert!(login.refusal(&both).is_none());
        login.refused(both.clone(), Failure::new(FailureKind::Denied, "no"));
        assert!(!login.has_other_password(), "it was refused a moment ago");
        assert_eq!(login.refusal(&both).unwrap().to_string(), "no");

        fs::write(&file, "newer").unwrap();
        assert!(login.has_other_password(), "nobody has refused this one");
        assert!(login.refusal(&login.passwords().unwrap()).is_none());
        fs::write(&file, "new").unwrap();
        login.accepted("old".to_owned());
        assert!(login.has_other_password(), "etcd may know it by now");
        assert!(!format!("{login:?}").contains("old"));

        fs::remove_file(&file).unwrap();
        assert_eq!(login.passwords().unwrap(), ["old"], "what worked is better than nothing");
        let login = Login::new("me".to_owned(), Secret::file(&file));
        assert_eq!(login.passwords().unwrap_err().kind, FailureKind::Denied);
    }
}
