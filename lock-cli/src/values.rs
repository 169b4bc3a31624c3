//! Values of options that shells complete.

#[cfg(all(feature = "bench", target_os = "linux"))]
pub(crate) mod bench;

#[cfg(feature = "metrics")]
use std::net::SocketAddr;
use std::{ffi::OsStr, str::FromStr, time::Duration};

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use lock_core::duration;
use tracing_subscriber::filter::LevelFilter;

use crate::on_lost::OnLost;

/// A duration, in the form of a URL.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    duration::parse(text).ok_or(duration::FORM)
}

/// An address and a port.
#[cfg(feature = "metrics")]
pub(crate) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "an address and a port, such as 127.0.0.1:9464 or [::]:9464")
}

/// The values of `--log`.
pub(crate) fn levels() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["off", "error", "warn", "info", "debug", "trace"])
        .try_map(|level| level.parse::<LevelFilter>())
}

/// The values of `--on-lost`. Shells complete its words; the user adds a grace.
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

/// A claim's number: `C7`, `c7` or `7`.
#[cfg(all(feature = "compare", target_os = "linux"))]
pub(crate) fn claim(text: &str) -> Result<u8, String> {
    let known = lock_compare::claims::all().iter().map(|experiment| experiment.claim().number);
    let number = text.strip_prefix(['C', 'c']).unwrap_or(text).parse().ok();
    let found = known.clone().find(|claim| Some(*claim) == number);
    found.ok_or_else(|| {
        let (least, most) = (known.clone().min().unwrap_or(0), known.max().unwrap_or(0));
        format!("no such claim; they are C{least} to C{most}")
    })
}
