//! One host of a database.

use std::time::Duration;

use lock_core::Error;

use crate::wire::{
    connections::Link, failure::Failure, limit::Limit, own_client::Way, verdict::Origin,
};

/// One host of a database, and the way to it.
pub(crate) struct Host<C: Link> {
    /// Its name and port, for people.
    pub(crate) name: String,
    pub(crate) way: Way<C>,
}

/// A host that takes writes.
pub(super) struct Probe<C> {
    pub(super) connection: C,
    pub(super) origin: Option<Origin>,
}

impl<C: Link> Clone for Host<C> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), way: self.way.clone() }
    }
}

impl<C: Link> Host<C> {
    /// The options of a new connection: the password is read now.
    ///
    /// # Errors
    ///
    /// [`Failure::Barred`] if the password cannot be read.
    pub(super) fn options(&self) -> Result<C::Options, Failure> {
        (self.way)().map_err(|error: Error| Failure::Barred(error))
    }

    /// Makes a connection.
    ///
    /// # Errors
    ///
    /// [`Failure::Barred`] and [`Failure::Down`].
    pub(super) async fn make(&self, limit: Duration) -> Result<C, Failure> {
        let options = self.options()?;
        Limit::new(limit).keep(C::make(&options)).await.map_err(Failure::Down)?
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
            let mut connection = C::make(&options).await?;
            // A user may not be allowed to ask.
            let origin = connection.origin().await.ok().flatten();
            Ok(Probe { connection, origin })
        };
        limit.keep(probe).await.map_err(Failure::Down)?
    }
}
