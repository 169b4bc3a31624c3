//! Where the name of a user comes from.

use std::{fmt, path::PathBuf};

use super::{
    StoreUrl,
    options::Options,
    source::{Part, Source},
};
use crate::Result;

/// Where the name of a login's user comes from. `Debug` shows a name that is a text, for it is no
/// secret, and the place of another.
///
/// One from a file or from the environment is read at every login, together with the password, a
/// [`Secret`](crate::Secret). So a program goes on when another user takes the place of the first
/// one, as it does when a password is rotated.
///
/// The two are no pair while only one of them has changed: such a login is refused, and later ones
/// read both again.
///
/// In a URL: `scheme://USER@HOST`, or `scheme://HOST?user_file=PATH` or `?user_env=VARIABLE`. In a
/// configuration file: a text, `{ file = "PATH" }` or `{ env = "VARIABLE" }`.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::User;
///
/// let user = User::text("me");
/// assert_eq!(user.read()?, "me");
/// assert_eq!(format!("{:?} {user:?}", User::file("/run/user")), "(file /run/user) \"me\"");
/// # Ok::<(), lock_core::Error>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct User(Source);

impl User {
    /// The name itself.
    pub fn text(name: impl Into<String>) -> Self {
        Self(Source::Text(name.into()))
    }

    /// The content of a file, without the line end after it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// The value of an environment variable of this process, without the line end after it.
    pub fn env(variable: impl Into<String>) -> Self {
        Self(Source::Env(variable.into()))
    }

    /// Reads the name, which may have changed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) if the file or the variable cannot be
    /// read, or is empty.
    pub fn read(&self) -> Result<String> {
        self.0.read(&Part::USER)
    }

    /// Whether it may have changed since it was read.
    pub fn can_change(&self) -> bool {
        self.0.can_change()
    }

    /// For drivers: the user of a URL, from the place that the URL says.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](crate::Error::InvalidUrl) if it names more than one place.
    pub fn from_url(url: &StoreUrl, options: &mut Options<'_>) -> Result<Option<Self>> {
        Ok(Source::from_url(url, options, &Part::USER, url.user())?.map(Self))
    }
}

impl From<&str> for User {
    fn from(name: &str) -> Self {
        Self::text(name)
    }
}

impl From<String> for User {
    fn from(name: String) -> Self {
        Self::text(name)
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Text(name) => fmt::Debug::fmt(name, f),
            source => f.write_str(&source.place().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(url: &str) -> Result<Option<User>> {
        let url = StoreUrl::parse(url)?;
        let mut options = url.options();
        let user = User::from_url(&url, &mut options)?;
        options.finish()?;
        Ok(user)
    }

    #[test]
    fn a_user_comes_from_one_place() {
        assert_eq!(user("x://me@h").unwrap(), Some("me".into()));
        assert_eq!(user("x://h?user_file=/u").unwrap(), Some(User::file("/u")));
        assert_eq!(user("x://:p455@h?user_env=U").unwrap(), Some(User::env("U")));
        assert_eq!(user("x://h").unwrap(), None);
        for url in ["x://me:p455@h?user_file=/u", "x://h?user_file=/u&user_env=U"] {
            let error = user(url).unwrap_err().to_string();
            let told = "one user, please: before the host, by user_file, or by user_env";
            assert!(error.contains(told) && !error.contains("p455"), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_each_time() {
        let file = std::env::temp_dir().join(format!("distlock-user-{}", std::process::id()));
        let user = User::file(&file);
        for name in ["first", "second"] {
            std::fs::write(&file, format!("{name}\r\n")).unwrap();
            assert_eq!(user.read().unwrap(), name);
        }
        std::fs::write(&file, "").unwrap();
        let empty = user.read().unwrap_err().to_string();
        assert!(empty.contains("user_file") && empty.contains("empty"), "{empty}");
        std::fs::remove_file(&file).unwrap();
        assert!(user.read().unwrap_err().to_string().contains("not readable"));
        let unset = User::env("DISTLOCK_NOT_SET").read().unwrap_err().to_string();
        assert!(unset.contains("user_env"), "{unset}");
        assert!(user.can_change() && !User::text("me").can_change());
    }

    #[test]
    fn a_name_that_is_a_text_is_shown() {
        assert_eq!(format!("{:?}", User::text("me")), "\"me\"");
        assert_eq!(format!("{:?}", User::env("NAME")), "(variable NAME)");
    }
}
