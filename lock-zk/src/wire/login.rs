//! The login of a client's sessions.

use std::{fmt, sync::Mutex};

use lock_core::{Instant, Result, Secret, User, keep::poison::lock};

/// ZooKeeper's scheme for a user and a password.
pub(crate) const SCHEME: &str = "digest";
/// How many logins new sessions present, with the earlier ones. Those may own nodes that other
/// sessions of this client have made. Each change of user and password may have been read half done.
const MOST_KEPT: usize = 5;

/// A user and a password, and those that the client has had since it began.
pub(crate) struct Login {
    user: User,
    secret: Secret,
    /// As ZooKeeper takes them, the newest last.
    known: Mutex<Vec<String>>,
}

/// The newest login of a session, and when the session logged in anew.
pub(crate) struct Newest {
    pub(crate) login: Option<String>,
    pub(crate) since: Option<Instant>,
}

impl Login {
    /// Reads user and password for the first time.
    pub(crate) fn new(user: User, secret: Secret) -> Result<Self> {
        let login = Self { user, secret, known: Mutex::default() };
        login.read()?;
        Ok(login)
    }

    /// Reads both anew, and returns the login as ZooKeeper takes it.
    pub(crate) fn read(&self) -> Result<String> {
        let now = format!("{}:{}", self.user.read()?, self.secret.read()?);
        let mut known = lock(&self.known);
        known.retain(|login| *login != now);
        known.push(now.clone());
        let surplus = known.len().saturating_sub(MOST_KEPT);
        known.drain(..surplus);
        Ok(now)
    }

    /// Returns the logins for a new session, the newest last. If it cannot be read now, the ones
    /// that were read before count.
    pub(crate) fn for_session(&self) -> Vec<String> {
        if let Err(error) = self.read() {
            tracing::warn!(target: "distlock", %error, "the login read before is used");
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
        let login = Login::new("me".into(), Secret::file(&file)).unwrap();
        assert_eq!(login.for_session(), ["me:first"]);
        std::fs::write(&file, "second").unwrap();
        assert_eq!(login.read().unwrap(), "me:second");
        assert_eq!(login.for_session(), ["me:first", "me:second"]);
        std::fs::remove_file(&file).unwrap();
        assert!(login.read().is_err());
        assert_eq!(login.for_session(), ["me:first", "me:second"]);
        let shown = format!("{login:?}");
        assert!(!shown.contains("first") && !shown.contains("second"), "{shown}");
        assert!(Login::new("me".into(), Secret::file(&file)).is_err());
    }

    #[test]
    fn a_new_user_is_another_login() {
        let file = std::env::temp_dir().join(format!("lock-zk-{}", uuid::Uuid::new_v4()));
        std::fs::write(&file, "me\n").unwrap();
        let login = Login::new(User::file(&file), "secret".into()).unwrap();
        std::fs::write(&file, "other\n").unwrap();
        assert_eq!(login.for_session(), ["me:secret", "other:secret"]);
        std::fs::write(&file, "").unwrap();
        assert!(login.read().unwrap_err().to_string().contains("user_file"));
        std::fs::remove_file(&file).unwrap();
        let shown = format!("{login:?}");
        assert!(shown.contains("(file ") && !shown.contains("secret"), "{shown}");
    }
}
