//! Failures that the client library does not see.

use std::{
    io,
    sync::{Arc, Mutex},
};

use lock_core::keep::poison::lock;

use crate::wire::failure::Failure;

/// Why a relay reaches no server. The client library sees only the end of its connection to the
/// relay.
#[derive(Clone, Default)]
pub(crate) struct Unseen(Arc<Mutex<Last>>);

/// How many failures there were, and the last one.
#[derive(Default)]
struct Last {
    count: u64,
    why: Option<(io::ErrorKind, String)>,
}

impl Unseen {
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(super) fn note(&self, why: &io::Error, text: String) {
        let mut last = lock(&self.0);
        *last = Last { count: last.count + 1, why: Some((why.kind(), text)) };
    }

    pub(super) fn count(&self) -> u64 {
        lock(&self.0).count
    }

    /// The cause of a failed connection, if a relay has noted one since there were `before`. Of
    /// several connections at a time, one may get the cause of another: they go to one server.
    pub(super) fn cause(&self, before: u64, failure: Failure) -> Failure {
        let Failure::Down(sqlx::Error::Io(_) | sqlx::Error::Protocol(_)) = failure else {
            return failure;
        };
        match &*lock(&self.0) {
            Last { count, why: Some((kind, text)) } if *count > before => {
                Failure::Down(sqlx::Error::Io(io::Error::new(*kind, text.clone())))
            }
            _ => failure,
        }
    }
}
