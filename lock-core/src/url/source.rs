//! Where a part of a login comes from.

use std::{env, fs, path::PathBuf};

use super::{StoreUrl, options::Options, tls::invalid};
use crate::Result;

/// The place of a text that may change while the program runs.
#[derive(Clone, Eq, PartialEq)]
pub(super) enum Source {
    Text(String),
    File(PathBuf),
    Env(String),
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

impl Source {
    /// Reads the text, which may have changed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption), with the option of `part`, if the
    /// file or the variable cannot be read, or is empty.
    pub(super) fn read(&self, part: &Part) -> Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => match fs::read_to_string(path) {
                Ok(text) => match text.trim_end_matches(['\r', '\n']) {
                    // It may be written just now.
                    "" => Err(invalid(part.file, path.display().to_string(), "it is empty")),
                    text => Ok(text.to_owned()),
                },
                Err(error) => {
                    let allowed = format!("not readable: {error}");
                    Err(invalid(part.file, path.display().to_string(), &allowed))
                }
            },
            Self::Env(variable) => {
                env::var(variable).ok().filter(|text| !text.is_empty()).ok_or_else(|| {
                    let allowed = "the variable is not set, empty, or no text";
                    invalid(part.env, variable.clone(), allowed)
                })
            }
        }
    }

    /// Whether the text may have changed since it was read.
    pub(super) fn can_change(&self) -> bool {
        !matches!(self, Self::Text(_))
    }

    /// Returns the place that a URL names: `text` is what stands before its host.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](crate::Error::InvalidUrl) if it names more than one place.
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

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Source {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Elsewhere(Elsewhere),
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Elsewhere {
            File(PathBuf),
            Env(String),
        }
        // The error of an untagged value shows nothing of the value.
        Ok(match Written::deserialize(from)? {
            Written::Text(text) => Self::Text(text),
            Written::Elsewhere(Elsewhere::File(path)) => Self::File(path),
            Written::Elsewhere(Elsewhere::Env(variable)) => Self::Env(variable),
        })
    }
}
