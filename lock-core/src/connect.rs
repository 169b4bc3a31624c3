//! From a URL to [`Locks`].

use std::{
    fmt,
    future::{Future, IntoFuture},
    panic::Location,
    pin::Pin,
    sync::Arc,
};

use crate::{DistributedLock, Locks, Requirement, Result, StoreUrl};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Opens the driver for a URL: what a facade knows and lock-core does not.
pub type Opener = fn(StoreUrl) -> Opening;

/// A driver on its way.
pub type Opening = Boxed<Result<Arc<dyn DistributedLock>>>;

/// A connection in the making: await it.
///
/// ```no_run
/// use lock_core::Requirement;
/// # fn connect(url: &str) -> lock_core::Connect { unreachable!() }
///
/// # async fn example() -> lock_core::Result<()> {
/// let locks = connect("etcd://127.0.0.1:2379")
///     .require(Requirement::StrictFencing)
///     .require(Requirement::Fifo)
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is connected until it is awaited"]
pub struct Connect {
    url: String,
    required: Vec<Requirement>,
    open: Opener,
    place: &'static Location<'static>,
}

impl Connect {
    /// A connection to `url` by `open`, with no requirements.
    #[track_caller]
    pub fn new(url: impl Into<String>, open: Opener) -> Self {
        Self { url: url.into(), required: Vec::new(), open, place: Location::caller() }
    }

    /// Refuses a store that does not promise this. May be called several times; what is missing is
    /// then named at once.
    pub fn require(mut self, requirement: Requirement) -> Self {
        self.required.push(requirement);
        self
    }
}

impl IntoFuture for Connect {
    type Output = Result<Locks>;
    type IntoFuture = Boxed<Result<Locks>>;

    /// # Errors
    ///
    /// [`Error::InvalidUrl`](crate::Error::InvalidUrl), [`Error::InvalidOption`](crate::Error::InvalidOption),
    /// [`Error::Unavailable`](crate::Error::Unavailable) (within 5 s), [`Error::Denied`](crate::Error::Denied),
    /// [`Error::Unmet`](crate::Error::Unmet).
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let driver = (self.open)(StoreUrl::parse(&self.url)?).await?;
            driver.guarantees().require(&self.required)?;
            Ok(Locks::connected(driver, self.place))
        })
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Connect");
        if let Ok(url) = StoreUrl::parse(&self.url) {
            debug.field("url", &url);
        }
        debug.field("required", &self.required).finish_non_exhaustive()
    }
}
