//! One host of a database.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    BoxError, Clock, Error, Instant,
    keep::{errors::denied, poison::lock},
};

use crate::wire::{failure::Failure, limit::Limit, link::Link, own_client::Way, verdict::Origin};

/// Pause after a refused login with the same options: it doubles up to the longest. A server may
/// lock an account after many refusals. Short beside a TTL: the server may accept the login soon,
/// where the password in a file is changed first.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The last login that the server refused.
pub(crate) struct Refused {
    /// A hash of the options, with the password.
    options: u64,
    until: Instant,
    pause: Duration,
    why: String,
}

/// One host of a database, and the way to it.
pub(crate) struct Host<C: Link> {
    /// Its name and port, for people.
    pub(crate) name: String,
    pub(crate) way: Way<C>,
    pub(crate) refused: Arc<Mutex<Option<Refused>>>,
}

/// A host that takes writes.
pub(super) struct Probe<C> {
    pub(super) connection: C,
    pub(super) origin: Option<Origin>,
}

impl<C: Link> Clone for Host<C> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), way: self.way.clone(), refused: self.refused.clone() }
    }
}

impl<C: Link> Host<C> {
    /// The options of a new connection: the password is read now.
    ///
    /// # Errors
    ///
    /// [`Failure::Barred`] if the password cannot be read, or was refused a moment ago.
    pub(super) fn options(&self) -> Result<C::Options, Failure> {
        let options = (self.way)().map_err(|error: Error| Failure::Barred(error))?;
        match &*lock(&self.refused) {
            Some(last) if last.options == hash(&options) && Clock::Boot.now() < last.until => {
                let why: BoxError = last.why.clone().into();
                Err(Failure::Barred(denied(C::DIALECT.store(), "connect", why)))
            }
            _ => Ok(options),
        }
    }

    /// Notes whether the server refused the login.
    fn note<T>(&self, options: &C::Options, made: &Result<T, Failure>) {
        let mut refused = lock(&self.refused);
        match made {
            Ok(_) => *refused = None,
            Err(Failure::Barred(Error::Denied { source, .. })) if is_login(&source.to_string()) => {
                let options = hash(options);
                let now = Clock::Boot.now();
                let last = refused.as_ref().filter(|last| last.options == options);
                let pause = match last {
                    // Several connections were made at once.
                    Some(last) if now < last.until => return,
                    Some(last) => (last.pause * 2).min(LONGEST_PAUSE),
                    None => PAUSE,
                };
                let until = now + pause;
                *refused = Some(Refused { options, until, pause, why: source.to_string() });
            }
            Err(_) => {}
        }
    }

    /// Makes a connection.
    ///
    /// # Errors
    ///
    /// [`Failure::Barred`] and [`Failure::Down`].
    pub(super) async fn make(&self, limit: Duration) -> Result<C, Failure> {
        let options = self.options()?;
        Limit::new(limit).keep(C::make(&options)).await.map_err(Failure::Down).and_then(|made| {
            self.note(&options, &made);
            made
        })
    }

    /// Makes a connection, and asks where the server's data comes from.
    ///
    /// # Errors
    ///
    /// Same as [`make`](Self::make).
    pub(super) async fn probe(&self, limit: Duration) -> Result<Probe<C>, Failure> {
        let limit = Limit::new(limit);
        let options = self.options()?;
        let probe = async {
            let connection = C::make(&options).await;
            self.note(&options, &connection);
            let mut connection = connection?;
            // A user may not be allowed to ask.
            let origin = connection.origin().await.ok().flatten();
            Ok(Probe { connection, origin })
        };
        limit.keep(probe).await.map_err(Failure::Down)?
    }
}

/// The library's options show everything, also the password.
fn hash(options: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{options:?}").hash(&mut hasher);
    hasher.finish()
}

/// PostgreSQL's code, and the words of MySQL and MariaDB.
fn is_login(why: &str) -> bool {
    why.contains("(28") || why.contains("(using password")
}
