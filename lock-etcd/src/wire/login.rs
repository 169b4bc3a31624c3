//! A login whose password may be replaced while the client runs.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{Clock, Instant, Secret, keep::poison::lock};

use crate::error::{Failure, FailureKind};

/// How long a password that etcd has refused is not worth another login: checking one costs etcd
/// much.
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
    /// When it last refused all that there are.
    refused: Option<Instant>,
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

    /// Notes that etcd refused all passwords.
    pub(crate) fn refused(&self) {
        lock(&self.known).refused = Some(Clock::Boot.now());
    }

    /// Whether the password is another one than that in use, and worth a try.
    pub(crate) fn has_other_password(&self) -> bool {
        let known = lock(&self.known);
        let now = Clock::Boot.now();
        let refused = known.refused.is_some_and(|at| now < at + REFUSED);
        !refused && self.secret.read().is_ok_and(|password| known.accepted != Some(password))
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
        login.refused();
        assert!(!login.has_other_password(), "it was refused a moment ago");
        login.accepted("old".to_owned());
        assert!(login.has_other_password(), "etcd may know it by now");
        assert!(!format!("{login:?}").contains("old"));

        fs::remove_file(&file).unwrap();
        assert_eq!(login.passwords().unwrap(), ["old"], "what worked is better than nothing");
        let login = Login::new("me".to_owned(), Secret::file(&file));
        assert_eq!(login.passwords().unwrap_err().kind, FailureKind::Denied);
    }
}
