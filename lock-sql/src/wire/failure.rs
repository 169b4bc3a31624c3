//! Why a script has no answer.

use std::{fmt::Display, io};

use lock_core::{
    BoxError, Effect, Error,
    keep::errors::{denied, unavailable},
};

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::wire::tls_error;
use crate::{error, layout::dialect::Dialect};

/// Why a script has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection, and a retry does not help.
    Barred(Error),
    /// The same, since the server refuses the login, with this reason.
    Login(BoxError),
    /// Not sent: there is no connection now.
    Down(sqlx::Error),
    /// Sent perhaps, and perhaps executed.
    Lost(sqlx::Error),
    /// The database refused it.
    Refused(sqlx::Error),
}

impl Failure {
    /// Why there is no connection to a server.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn unconnected(dialect: Dialect, why: sqlx::Error) -> Self {
        let why = tls_error::without_texts(why);
        if error::is_login(dialect, &why) {
            return Self::Login(error::worded(dialect, why));
        }
        match error::is_final(dialect, &why) {
            true => Self::Barred(error::not_sent(dialect, "connect", why)),
            false => Self::Down(why),
        }
    }

    /// There is no connection now, for this reason.
    pub(crate) fn down(why: &str) -> Self {
        Self::Down(sqlx::Error::Io(io::Error::other(why.to_owned())))
    }

    /// Whether nothing was sent, and a retry does not help.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Closed | Self::Barred(_) | Self::Login(_))
    }

    /// The reason, for people.
    pub(crate) fn why(&self) -> &dyn Display {
        match self {
            Self::Closed => &"the client is closed",
            Self::Barred(error) => error,
            Self::Login(why) => why,
            Self::Down(error) | Self::Lost(error) | Self::Refused(error) => error,
        }
    }

    /// The error of a request that has had no effect.
    pub(crate) fn unsent(self, dialect: Dialect, op: &'static str) -> Error {
        match self {
            Self::Closed => Error::closed(dialect.store()),
            Self::Barred(error) => error,
            Self::Login(why) => denied(dialect.store(), "connect", why),
            Self::Down(why) => {
                let why = error::worded(dialect, why);
                unavailable(dialect.store(), op, Effect::None, why)
            }
            Self::Lost(why) | Self::Refused(why) => error::not_sent(dialect, op, why),
        }
    }
}
