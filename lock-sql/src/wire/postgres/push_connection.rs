//! Makes the connection by which pushes come: one per client.

use std::sync::{Arc, OnceLock};

use lock_core::LockName;
use sqlx::{
    PgConnection,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
    raw_sql,
};
use tokio::{sync::Notify, task::AbortHandle};
use uuid::Uuid;

use super::fitness::{STATE, is_fit};
use crate::wire::{own_client::Way, script::OBSERVERS};

/// The means to listen to pushes.
pub(crate) struct Pushes {
    pub(crate) way: Way<PgConnection>,
    pub(crate) doubts: Arc<Doubts>,
    /// The task that listens: it ends when the client ends.
    pub(crate) task: OnceLock<AbortHandle>,
}

/// Doubts whether pushes still come.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Rings when another connection broke: this one may be broken, too.
    pub(crate) broken: Notify,
    /// Rings from time to time: only a missing answer shows that the other end of a connection is
    /// gone.
    pub(crate) silent: Notify,
}

/// Connects, and listens to the pushes for this client.
///
/// # Errors
///
/// If the connection fails, or the server takes no writes.
pub(crate) async fn connect(id: Uuid, options: PgConnectOptions) -> sqlx::Result<PgListener> {
    let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&one.connect_lazy_with(options)).await?;
    listener.eager_reconnect(false);
    // The server may be the former primary, which pushes nothing.
    let state = raw_sql(STATE).fetch_one(&mut listener).await?;
    if is_fit(Some(&state))?.is_err() {
        return Err(sqlx::Error::Io(std::io::Error::other("the server takes no writes")));
    }
    listener.listen(&format!("distlock_v1_{}", id.simple())).await?;
    listener.listen(OBSERVERS).await?;
    Ok(listener)
}

/// Reads the lock's name in a push.
pub(crate) fn name(hex: &str) -> Option<LockName> {
    // A sign is no digit, but `from_str_radix` accepts it.
    let is_hex = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pairs = hex.as_bytes().chunks_exact(2).take_while(|_| is_hex);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<_>> = pairs.map(byte).collect();
    LockName::new(String::from_utf8(bytes?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(name("61c3a9"), LockName::new("aé").ok());
        for odd in ["", "6", "zz", "ff", "+1"] {
            assert_eq!(name(odd), None, "{odd}");
        }
    }
}
