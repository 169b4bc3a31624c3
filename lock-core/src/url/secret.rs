//! Where a password or a token comes from.

use std::fmt;

use super::source::{Part, Source, part_of_a_login};

/// Where a password or a token comes from. `Debug` never shows the value.
///
/// One from a file or from the environment is read at every login. So a program whose secret is
/// rotated goes on with the new one as soon as the server refuses the old one.
///
/// In a URL: `scheme://USER:PASSWORD@HOST`, or `scheme://USER@HOST?password_file=PATH` or
/// `?password_env=VARIABLE`. In a configuration file: a text, `{ file = "PATH" }` or
/// `{ env = "VARIABLE" }`.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::Secret;
///
/// let secret = Secret::text("p455");
/// assert_eq!(secret.read()?, "p455");
/// assert_eq!(format!("{secret:?}"), "***");
/// # Ok::<(), lock_core::Error>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(transparent))]
pub struct Secret(Source);

part_of_a_login!(Secret, Part::PASSWORD, password);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.place().as_deref().unwrap_or("***"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Result, StoreUrl};

    fn secret(url: &str) -> Result<Option<Secret>> {
        let url = StoreUrl::parse(url)?;
        let mut options = url.options();
        let secret = Secret::from_url(&url, &mut options)?;
        options.finish()?;
        Ok(secret)
    }

    #[test]
    fn a_password_comes_from_one_place() {
        assert_eq!(secret("x://me:p@h").unwrap(), Some(Secret::text("p")));
        assert_eq!(secret("x://me@h?password_file=/p").unwrap(), Some(Secret::file("/p")));
        assert_eq!(secret("x://me@h?password_env=P").unwrap(), Some(Secret::env("P")));
        assert_eq!(secret("x://me@h").unwrap(), None);
        let error = secret("x://me:p455@h?password_env=P").unwrap_err().to_string();
        assert!(error.contains("one password") && !error.contains("p455"), "{error}");
    }

    #[test]
    fn a_file_is_read_each_time() {
        let path = std::env::temp_dir().join(format!("distlock-secret-{}", std::process::id()));
        let secret = Secret::file(&path);
        for value in ["first", "second"] {
            fs::write(&path, format!("{value}\n")).unwrap();
            assert_eq!(secret.read().unwrap(), value);
        }
        fs::write(&path, "\n").unwrap();
        assert!(secret.read().unwrap_err().to_string().contains("empty"));
        fs::remove_file(&path).unwrap();
        let error = secret.read().unwrap_err().to_string();
        assert!(error.contains("password_file") && error.contains("not readable"), "{error}");
        assert!(Secret::env("DISTLOCK_NOT_SET").read().is_err());
    }

    #[test]
    fn the_value_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::text("p455")), "***");
    }
}
