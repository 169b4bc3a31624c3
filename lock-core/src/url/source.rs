//! Where a part of a login comes from.

use std::{env, fs, path::PathBuf};

use super::{StoreUrl, options::Options};
use crate::{Result, keep::errors::invalid};

/// The place of a text that may change while the program runs.
#[derive(Clone, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(rename_all = "snake_case"))]
pub(super) enum Source {
    File(PathBuf),
    Env(String),
    /// Last: all that is not one of the others. The error for an untagged value does not show it.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Text(String),
}

/// A part of a login, and the options that say where it is.
pub(super) struct Part {
    name: &'static str,
    file: &'static str,
    env: &'static str,
}

impl Part {
    pub(super) const USER: Self = Self { name: "user", file: "user_file", env: "user_env" };
    pub(super) const PASSWORD: Self =
        Self { name: "password", file: "password_file", env: "password_env" };
}

/// The methods of a type for a part of a login, which `$of_url` reads from a URL's authority.
macro_rules! part_of_a_login {
    ($type:ident, $part:expr, $of_url:ident) => {
        impl $type {
            /// The text itself.
            pub fn text(text: impl Into<String>) -> Self {
                Self(Source::Text(text.into()))
            }

            /// The content of a file, without the line end after it.
            pub fn file(path: impl Into<std::path::PathBuf>) -> Self {
                Self(Source::File(path.into()))
            }

            /// The value of an environment variable of this process, without the line end after it.
            pub fn env(variable: impl Into<String>) -> Self {
                Self(Source::Env(variable.into()))
            }

            /// Reads the text, which may have changed.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidOption`](crate::Error::InvalidOption) if the file or the variable
            /// cannot be read, or is empty.
            pub fn read(&self) -> crate::Result<String> {
                self.0.read(&$part)
            }

            /// Whether it may have changed since it was read.
            pub fn can_change(&self) -> bool {
                self.0.can_change()
            }

            /// For drivers: what a URL says, or the place that it names.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidUrl`](crate::Error::InvalidUrl) if it names more than one place.
            pub fn from_url(
                url: &crate::StoreUrl,
                options: &mut crate::Options<'_>,
            ) -> crate::Result<Option<Self>> {
                Ok(Source::from_url(url, options, &$part, url.$of_url())?.map(Self))
            }
        }

        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                Self::text(text)
            }
        }

        impl From<String> for $type {
            fn from(text: String) -> Self {
                Self::text(text)
            }
        }
    };
}
pub(super) use part_of_a_login;

impl Source {
    /// Reads the text, which may have changed, without the line end after it.
    pub(super) fn read(&self, part: &Part) -> Result<String> {
        let (option, place, text) = match self {
            Self::Text(text) => return Ok(text.clone()),
            Self::File(path) => {
                let text = fs::read_to_string(path).map_err(|why| format!("not readable: {why}"));
                (part.file, path.display().to_string(), text)
            }
            Self::Env(variable) => {
                let text = env::var(variable).map_err(|_| "not set, or no text".to_owned());
                (part.env, variable.clone(), text)
            }
        };
        match text.as_deref().map(|text| text.trim_end_matches(['\r', '\n'])) {
            // A file may be written just now.
            Ok("") => Err(invalid(option, place, "it is empty")),
            Ok(text) => Ok(text.to_owned()),
            Err(why) => Err(invalid(option, place, why)),
        }
    }

    /// Whether the text may have changed since it was read.
    pub(super) fn can_change(&self) -> bool {
        !matches!(self, Self::Text(_))
    }

    /// Returns the place that a URL names: `text` is what stands before its host.
    pub(super) fn from_url(
        url: &StoreUrl,
        options: &mut Options<'_>,
        part: &Part,
        text: Option<&str>,
    ) -> Result<Option<Self>> {
        let sources = [
            text.map(|text| Self::Text(text.to_owned())),
            options.text(part.file).map(|path| Self::File(path.into())),
            options.text(part.env).map(|variable| Self::Env(variable.to_owned())),
        ];
        let mut given = sources.into_iter().flatten();
        match (given.next(), given.next()) {
            (source, None) => Ok(source),
            _ => Err(url.error(format!(
                "one {}, please: before the host, by {}, or by {}",
                part.name, part.file, part.env
            ))),
        }
    }

    /// What may be shown of the place; nothing if it is the text itself.
    pub(super) fn place(&self) -> Option<String> {
        match self {
            Self::Text(_) => None,
            Self::File(path) => Some(format!("(file {})", path.display())),
            Self::Env(variable) => Some(format!("(variable {variable})")),
        }
    }
}
