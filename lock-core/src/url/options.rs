//! The options of a URL: `?option=value&..`.

use std::{collections::BTreeMap, time::Duration};

use super::{parts::decode, secrets::is_secret};
use crate::{Error, Result, driver::duration, keep::errors::invalid};

/// The options of a URL. A driver asks for each option that it knows, then calls
/// [`finish`](Self::finish), which refuses the rest: a misspelt option is an error, not a default.
#[derive(Debug)]
pub struct Options<'a> {
    pub(super) given: &'a BTreeMap<String, String>,
    pub(super) known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    /// The text of an option.
    pub fn text(&mut self, option: &'static str) -> Option<&'a str> {
        self.known.push(option);
        self.given.get(option).map(String::as_str)
    }

    /// A duration above zero, as [`duration::parse`] reads it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if it is anything else.
    pub fn duration(&mut self, option: &'static str) -> Result<Option<Duration>> {
        self.read(option, |text| {
            let duration = duration::parse(text).filter(|duration| !duration.is_zero());
            duration.ok_or_else(|| duration::FORM.to_owned())
        })
    }

    /// A whole number within a range.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if it is anything else.
    pub fn number(
        &mut self,
        option: &'static str,
        allowed: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        self.read(option, |text| {
            let number = text.parse().ok().filter(|number| allowed.contains(number));
            let (least, most) = (allowed.start(), allowed.end());
            number.ok_or_else(|| format!("expected a number of {least} to {most}"))
        })
    }

    /// One of several words.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if it is none of them.
    pub fn choice<T: Copy>(
        &mut self,
        option: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        self.read(option, |text| {
            let chosen = choices.iter().find(|(word, _)| *word == text);
            let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            chosen.map(|(_, value)| *value).ok_or_else(|| format!("expected one of {}", words()))
        })
    }

    /// Reads an option, if it is given. What `read` fails with says what is allowed.
    fn read<T>(
        &mut self,
        option: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>> {
        let Some(text) = self.text(option) else { return Ok(None) };
        read(text).map(Some).map_err(|allowed| refused(option, text, &allowed))
    }

    /// Refuses options that the driver did not ask for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] that names the first unknown option and all known ones. It does not
    /// show the value, which may be a secret.
    pub fn finish(self) -> Result<()> {
        let unknown = self.given.keys().find(|option| !self.known.contains(&option.as_str()));
        let Some(option) = unknown else { return Ok(()) };
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        Err(refused(option, "***", &format!("unknown option; this store knows: {known}")))
    }
}

pub(super) fn options(query: &str) -> Result<BTreeMap<String, String>, String> {
    let mut options = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (option, value) =
            pair.split_once('=').ok_or_else(|| format!("option {pair:?} has no value"))?;
        if is_secret(option) {
            return Err(format!(
                "a {option} belongs before the host, as in SCHEME://USER:PASSWORD@HOST, or into a \
                 file (option password_file) or a variable (password_env)"
            ));
        }
        if options.insert(option.to_owned(), decode(value)?).is_some() {
            return Err(format!("option {option:?} is given twice"));
        }
    }
    Ok(options)
}

fn refused(option: &str, value: &str, allowed: &str) -> Error {
    invalid(&format!("URL option {option}"), value, allowed)
}

#[cfg(test)]
mod tests {
    use crate::StoreUrl;

    #[test]
    fn the_value_of_an_unknown_option_is_not_shown() {
        let url = StoreUrl::parse("redis://h?opensesame=QXZ").unwrap();
        let error = url.options().finish().unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("opensesame") && !shown.contains("QXZ"), "{shown}");
    }
}
