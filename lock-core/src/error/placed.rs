//! What lock-core adds to a client library's error.

use std::{fmt, sync::Arc};

use crate::LockName;

/// The error of a client library, or of a driver. [`Error::client_error`](crate::Error::client_error)
/// returns the client library's own.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A client library's error with the lock's name, and the server's address in front.
#[derive(Debug)]
pub(super) struct Placed {
    /// In the text of the whole error.
    pub(super) name: Option<LockName>,
    pub(super) place: Option<String>,
    pub(super) hint: Option<String>,
    pub(super) source: BoxError,
}

impl Placed {
    pub(super) fn of(source: BoxError) -> Self {
        match source.downcast() {
            Ok(placed) => *placed,
            Err(source) => Self { name: None, place: None, hint: None, source },
        }
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        self.source.fmt(f)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Placed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// A driver's text in place of a client library's error, which the text repeats. So it is no cause.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Reworded {
    pub(crate) text: String,
    pub(crate) error: BoxError,
}

/// A client library's error that several callers get.
pub(crate) type Shared = Arc<dyn std::error::Error + Send + Sync>;

/// Returns the client library's own error below what lock-core and the drivers have added.
pub(super) fn unwrapped<'a>(
    mut error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    loop {
        if let Some(placed) = error.downcast_ref::<Placed>() {
            error = &*placed.source;
        } else if let Some(reworded) = error.downcast_ref::<Reworded>() {
            error = &*reworded.error;
        } else if let Some(shared) = error.downcast_ref::<Shared>() {
            error = &**shared;
        } else {
            return error;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use crate::{Effect, Error, LockName, keep::errors};

    #[test]
    fn the_client_s_own_error_is_found_below_what_was_added() {
        let own = io::Error::from(io::ErrorKind::ConnectionRefused);
        let text = errors::reworded("nobody listens", own);
        let source = errors::reworded("nobody listens (start the server)", text);
        let name: LockName = "orders/42".parse().unwrap();
        let error = errors::unavailable("redis", "acquire", Effect::None, source);
        let error = error.at(Some("h:1")).about(&name).hinted("a hint".to_owned());
        let text = "redis is unavailable: acquire of lock orders/42 failed: h:1: nobody listens \
                    (start the server); a hint";
        assert_eq!((error.to_string().as_str(), format!("{error:?}").as_str()), (text, text));
        let own = error.client_error().and_then(|own| own.downcast_ref::<io::Error>());
        assert_eq!(own.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
    }

    #[test]
    fn each_of_several_callers_finds_the_client_s_own_error() {
        let own = io::Error::from(io::ErrorKind::ConnectionRefused);
        let source = errors::reworded("nobody listens", own);
        let first = errors::shared(errors::denied("redis", "connect", source));
        for error in [errors::again(&first), first] {
            let text = "redis denied connect: nobody listens";
            assert_eq!((error.to_string().as_str(), format!("{error:?}").as_str()), (text, text));
            let own = error.client_error().and_then(|own| own.downcast_ref::<io::Error>());
            assert_eq!(own.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
        }
    }

    #[test]
    fn an_error_without_a_client_s_has_none() {
        let name: LockName = "orders/42".parse().unwrap();
        assert!(Error::Contended { name }.client_error().is_none());
        let late = errors::unavailable("redis", "acquire", Effect::None, "no answer within 2s");
        let own = late.client_error().expect("the driver's words");
        assert!(own.downcast_ref::<io::Error>().is_none(), "{own:?}");
    }
}
