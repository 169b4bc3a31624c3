//! The login of a client's sessions.

use std::{fmt, sync::Mutex};

use lock_core::{Result, Secret, keep::poison::lock};

/// ZooKeeper's scheme for a user and a password.
pub(crate) const SCHEME: &str = "digest";
/// How many earlier passwords new sessions present, too. They may own nodes that other sessions of
/// this client have made.
const MOST_KEPT: usize = 3;

/// A user, and the passwords that it has had since the client began.
pub(crate) struct Login {
    user: String,
    secret: Secret,
    /// As ZooKeeper takes them, the newest last.
    known: Mutex<Vec<String>>,
}

impl Login {
    /// Reads the password for the first time.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn new(user: String, secret: Secret) -> Result<Self> {
        let login = Self { user, secret, known: Mutex::default() };
        login.read()?;
        Ok(login)
    }

    /// Reads the password anew, and returns the login as ZooKeeper takes it.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn read(&self) -> Result<String> {
        let now = format!("{}:{}", self.user, self.secret.read()?);
        let mut known = lock(&self.known);
        known.retain(|login| *login != now);
        known.push(now.clone());
        let surplus = known.len().saturating_sub(MOST_KEPT);
        known.drain(..surplus);
        Ok(now)
    }

    /// Returns the logins for a new session, the newest last. If the password cannot be read now,
    /// the ones that were read before count.
    pub(crate) fn for_session(&self) -> Vec<String> {
        if let Err(error) = self.read() {
            tracing::warn!(target: "distlock", %error, "the password read before is used");
        }
        lock(&self.known).clone()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_password_is_added_and_not_shown() {
        let file = std::env::temp_dir().join(format!("lock-zk-{}", uuid::Uuid::new_v4()));
        std::fs::write(&file, "first").unwrap();
        let login = Login::new("me".to_owned(), Secret::file(&file)).unwrap();
        assert_eq!(login.for_session(), ["me:first"]);
        std::fs::write(&file, "second").unwrap();
        assert_eq!(login.read().unwrap(), "me:second");
        assert_eq!(login.for_session(), ["me:first", "me:second"]);
        std::fs::remove_file(&file).unwrap();
        assert!(login.read().is_err());
        assert_eq!(login.for_session(), ["me:first", "me:second"]);
        let shown = format!("{login:?}");
        assert!(!shown.contains("first") && !shown.contains("second"), "{shown}");
        assert!(Login::new("me".to_owned(), Secret::file(&file)).is_err());
    }
}
