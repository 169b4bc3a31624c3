//! A new login while the session lives.
//!
//! A session collects logins: another one adds its rights and takes none away. So a user or a
//! password that was changed costs no lock. The session reads both anew when the server refuses a
//! request.

use std::time::Duration;

use lock_core::Clock;

use crate::{
    error::{self, Meaning},
    session::Session,
    wire::login::{Newest, SCHEME},
};

/// A request that was refused this long after a new login may have been sent before it.
const RECENT: Duration = Duration::from_millis(500);
/// The pause before such a request is repeated.
const PAUSE: Duration = Duration::from_millis(100);

impl Session {
    /// Reads the login anew after the server has refused a request, and logs in if it is another
    /// one. Returns whether the request may succeed now; then it may also have paused.
    pub(crate) async fn log_in_anew(&self) -> bool {
        let Some(login) = &self.route.login else { return false };
        let asked = Clock::Boot.now();
        let mut newest = self.newest.lock().await;
        if newest.since.is_some_and(|since| asked < since + RECENT) {
            // Another request's refusal has led to it, and this one may have been sent before.
            drop(newest);
            Clock::Boot.sleep(PAUSE).await;
            return true;
        }
        let read = match login.read() {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(target: "distlock", %error, "the login cannot be read anew");
                return false;
            }
        };
        if newest.login.as_ref() == Some(&read) {
            return false;
        }
        let Some(client) = self.client() else { return false };
        match client.auth(SCHEME, read.as_bytes()).await {
            Ok(()) => {
                *newest = Newest { login: Some(read), since: Some(Clock::Boot.now()) };
                tracing::info!(target: "distlock", "logged in anew");
                true
            }
            Err(error) => {
                Clock::Boot.sleep(PAUSE).await;
                error::meaning(&error) == Meaning::Unanswered
            }
        }
    }
}
