//! Where a password or a token comes from.

use std::{env, fmt, fs, path::PathBuf};

use super::{StoreUrl, options::Options, tls::invalid};
use crate::Result;

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
pub struct Secret(Source);

#[derive(Clone, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
enum Source {
    #[cfg_attr(feature = "serde", serde(skip))]
    Text(String),
    File(PathBuf),
    Env(String),
}

impl Secret {
    /// The secret itself.
    pub fn text(secret: impl Into<String>) -> Self {
        Self(Source::Text(secret.into()))
    }

    /// The content of a file, without the line end after it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// The value of an environment variable of this process.
    pub fn env(variable: impl Into<String>) -> Self {
        Self(Source::Env(variable.into()))
    }

    /// Reads the secret, which may have changed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) if the file or the variable cannot be
    /// read, or is empty.
    pub fn read(&self) -> Result<String> {
        match &self.0 {
            Source::Text(text) => Ok(text.clone()),
            Source::File(path) => match fs::read_to_string(path) {
                Ok(text) => match text.trim_end_matches(['\r', '\n']) {
                    // It may be written just now.
                    "" => Err(invalid("password_file", path.display().to_string(), "it is empty")),
                    text => Ok(text.to_owned()),
                },
                Err(error) => {
                    let allowed = format!("not readable: {error}");
                    Err(invalid("password_file", path.display().to_string(), &allowed))
                }
            },
            Source::Env(variable) => {
                env::var(variable).ok().filter(|text| !text.is_empty()).ok_or_else(|| {
                    let allowed = "the variable is not set, empty, or no text";
                    invalid("password_env", variable.clone(), allowed)
                })
            }
        }
    }

    /// Whether it may have changed since it was read.
    pub fn can_change(&self) -> bool {
        !matches!(self.0, Source::Text(_))
    }

    /// For drivers: the password of a URL, from the place that the URL says.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](crate::Error::InvalidUrl) if it names more than one place.
    pub fn from_url(url: &StoreUrl, options: &mut Options<'_>) -> Result<Option<Self>> {
        let sources = [
            url.password().map(Self::text),
            options.text("password_file").map(Self::file),
            options.text("password_env").map(Self::env),
        ];
        let mut given = sources.into_iter().flatten();
        match (given.next(), given.next()) {
            (secret, None) => Ok(secret),
            _ => Err(url.error(
                "one password, please: before the host, by password_file, or by password_env",
            )),
        }
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self::text(secret)
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self::text(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Text(_) => f.write_str("***"),
            Source::File(path) => write!(f, "(file {})", path.display()),
            Source::Env(variable) => write!(f, "(variable {variable})"),
        }
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Elsewhere(Source),
        }
        // The error of an untagged value shows nothing of the value.
        Ok(Self(match Written::deserialize(from)? {
            Written::Text(text) => Source::Text(text),
            Written::Elsewhere(source) => source,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
