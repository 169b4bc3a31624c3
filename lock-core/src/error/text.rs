//! The texts of errors.

use std::fmt;

use super::Error;
use crate::{Holder, Requirement, driver::duration::about};

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        f.write_str(&text)?;
        let causes = std::iter::successors(self.attached(), |error| error.source());
        let untold = causes.map(ToString::to_string).filter(|cause| !text.contains(cause.as_str()));
        for (number, cause) in untold.enumerate() {
            let heading = if number == 0 { "\n\nCaused by:" } else { "" };
            write!(f, "{heading}\n    {cause}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName { name, reason } if name.is_empty() => {
                write!(f, "no lock name: {reason}")
            }
            Self::InvalidName { name, reason } => write!(f, "invalid lock name {name:?}: {reason}"),
            Self::InvalidOption { option, value, allowed } => {
                write!(f, "invalid {option} {value:?}: {allowed}")
            }
            Self::InvalidUrl { url, reason } => write!(f, "invalid store URL {url:?}: {reason}"),
            Self::Unmet { store, missing } => {
                write!(f, "{store} does not promise {}", list(missing))
            }
            Self::Unsupported { store, what } => write!(f, "{store} cannot {what}"),
            Self::Contended { name } => write!(f, "lock {name} is busy"),
            Self::WaitTimeout { name, waited, holder, position } => {
                let blame = blame(holder.as_deref(), *position);
                write!(f, "gave up on lock {name} after {}: {blame}", about(*waited))
            }
            Self::Lost { name, reason } => write!(f, "lock {name} was lost: {reason}"),
            Self::Unavailable { store, op, effect, source } => {
                let of = self.name().map(|name| format!(" of lock {name}")).unwrap_or_default();
                write!(f, "{store} is unavailable: {op}{of} failed{}: {source}", effect.note())
            }
            Self::PlaceLost { store, name, reason } => {
                let lock =
                    name.as_ref().map(|name| format!("for lock {name} ")).unwrap_or_default();
                write!(f, "lost the place in line {lock}in {store}: {reason}")
            }
            Self::Denied { store, op, source } => write!(f, "{store} denied {op}: {source}"),
            Self::Misconfigured { store, op, source } => {
                write!(f, "{store} is not set up for {op}: {source}")
            }
            Self::Rejected { store, op, effect, source } => {
                write!(f, "{store} rejected {op}{}: {source}", effect.note())
            }
            Self::Closed { store, name, by } => {
                let lock = name.as_ref().map(|name| format!(" (lock {name})")).unwrap_or_default();
                write!(f, "{store} connection is closed{by}{lock}")
            }
        }
    }
}

fn list(missing: &[Requirement]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn blame(holder: Option<&Holder>, position: Option<usize>) -> String {
    let unsaid = || "the store did not say who holds it".to_owned();
    let holder = holder.map_or_else(unsaid, |h| format!("held by {h}"));
    match position {
        Some(position) => format!("{holder}; position {position} in the queue"),
        None => holder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, LockName};

    /// A `main` that returns an error prints its `Debug`.
    #[test]
    fn debug_is_for_people() {
        let name: LockName = "orders/42".parse().unwrap();
        let busy = Error::Contended { name };
        assert_eq!(format!("{busy:?}"), "lock orders/42 is busy");

        #[derive(Debug, thiserror::Error)]
        #[error("no connection")]
        struct NoConnection(#[source] std::io::Error);
        let refused = NoConnection(std::io::ErrorKind::ConnectionRefused.into());
        let error = Error::Rejected {
            store: "redis",
            op: "connect",
            effect: Effect::None,
            source: refused.into(),
        };
        let text =
            "redis rejected connect: h:1: no connection\n\nCaused by:\n    connection refused";
        assert_eq!(format!("{:?}", error.at(Some("h:1"))), text);
    }
}
