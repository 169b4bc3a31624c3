//! Values of options that shells complete.

use std::{ffi::OsStr, str::FromStr};

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use tracing_subscriber::filter::LevelFilter;

use crate::policy::OnLost;

/// What `--log` takes.
pub(crate) fn levels() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["off", "error", "warn", "info", "debug", "trace"])
        .try_map(|level| level.parse::<LevelFilter>())
}

/// What `--on-lost` takes. Shells complete its words; a grace is for people to add.
#[derive(Clone)]
pub(crate) struct Policies;

impl TypedValueParser for Policies {
    type Value = OnLost;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OnLost, Error> {
        OnLost::from_str.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["term", "kill", "ignore"].into_iter().map(PossibleValue::new)))
    }
}
