//! Setters of a driver's configuration.

/// Writes setters into an `impl`. Each takes the configuration and a value, and returns the
/// configuration: `field: type of the value => the field's new value;`
///
/// ```
/// # use std::time::Duration;
/// #[derive(Default)]
/// struct Config {
///     prefix: String,
///     ttl: Option<Duration>,
/// }
///
/// impl Config {
///     lock_core::setters! {
///         /// Sets the prefix.
///         prefix: impl Into<String> => prefix.into();
///         /// Sets the TTL.
///         ttl: Duration => Some(ttl);
///     }
/// }
///
/// let config = Config::default().prefix("locks/").ttl(Duration::from_secs(5));
/// assert_eq!((&*config.prefix, config.ttl), ("locks/", Some(Duration::from_secs(5))));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty => $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $value;
                self
            }
        )*
    };
}
