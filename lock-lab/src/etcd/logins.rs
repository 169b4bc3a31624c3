//! The login of the lab itself.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::json;
use uuid::Uuid;

use super::gateway;
use crate::LabError;

/// The password of the user `root`, made for one server or cluster, and whether it is needed.
#[derive(Clone)]
pub struct Logins(Arc<(String, AtomicBool)>);

impl Logins {
    pub(super) fn root(&self) -> &str {
        &self.0.0
    }

    pub(super) fn set_demanded(&self) {
        self.0.1.store(true, Ordering::Release);
    }

    /// Logs in; `None` if the server demands no login.
    pub(super) async fn token(&self, addr: SocketAddr) -> Result<Option<String>, LabError> {
        if !self.0.1.load(Ordering::Acquire) {
            return Ok(None);
        }
        let login = json!({ "name": "root", "password": self.root() });
        let reply = gateway::post(addr, "auth/authenticate", &login).await?;
        Ok(reply["token"].as_str().map(str::to_owned))
    }
}

impl Default for Logins {
    fn default() -> Self {
        Self(Arc::new((Uuid::new_v4().simple().to_string(), AtomicBool::new(false))))
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
