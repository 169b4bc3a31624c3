//! The attempt to get a session that all callers who need it share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{error::Failure, session::Session};

/// What has become of the attempt so far.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// etcd has not answered yet; why the last sending failed, if one did.
    NotYet(Option<Failure>),
    Session(Arc<Session>),
    /// etcd grants so many seconds and no less.
    OtherTtl(u64),
    /// etcd refused.
    Failed(Failure),
}

impl Made {
    /// Whether it is over.
    pub(crate) fn is_done(&self) -> bool {
        !matches!(self, Self::NotYet(_))
    }
}

/// The attempts under way, by the TTL in seconds.
#[derive(Debug, Default)]
pub(crate) struct Making(Mutex<HashMap<u64, watch::Sender<Made>>>);

impl Making {
    fn under_way(&self) -> MutexGuard<'_, HashMap<u64, watch::Sender<Made>>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the attempt, or begins one: then the second is where to tell what becomes of it.
    pub(crate) fn join(
        &self,
        seconds: u64,
    ) -> (watch::Receiver<Made>, Option<watch::Sender<Made>>) {
        let mut under_way = self.under_way();
        if let Some(tell) = under_way.get(&seconds) {
            return (tell.subscribe(), None);
        }
        let (tell, told) = watch::channel(Made::NotYet(None));
        under_way.insert(seconds, tell.clone());
        (told, Some(tell))
    }

    /// Ends the attempt, unless somebody has joined it since everybody had left.
    pub(crate) fn is_deserted(&self, seconds: u64) -> bool {
        let mut under_way = self.under_way();
        let deserted = under_way.get(&seconds).is_none_or(|tell| tell.receiver_count() == 0);
        if deserted {
            under_way.remove(&seconds);
        }
        deserted
    }

    /// Ends the attempt with what it came to.
    pub(crate) fn done(&self, seconds: u64, made: Made) {
        if let Some(tell) = self.under_way().remove(&seconds) {
            tell.send_replace(made);
        }
    }
}
