//! Where the name of a user comes from.

use std::fmt;

use super::source::{Part, Source, part_of_a_login};

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
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(transparent))]
pub struct User(Source);

part_of_a_login!(User, Part::USER, user);

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
    use crate::{Result, StoreUrl};

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
