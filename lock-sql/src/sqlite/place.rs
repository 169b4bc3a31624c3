//! What the clients of one file share within a process.

use std::{
    collections::HashMap,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use lock_core::LockName;

use crate::session::Session;

type Places = HashMap<(u64, u64), Weak<Place>>;

/// A file, by whatever path.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Held while a script runs.
    pub(crate) turn: tokio::sync::Mutex<()>,
    sessions: Mutex<Vec<Weak<Session>>>,
}

impl Place {
    /// The file at this path.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(crate) fn of(path: &Path) -> std::io::Result<Arc<Self>> {
        static PLACES: LazyLock<Mutex<Places>> = LazyLock::new(Mutex::default);
        let file = std::fs::metadata(path)?;
        // Nothing panics while it is held.
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| place.strong_count() > 0);
        let known = places.entry((file.dev(), file.ino())).or_default();
        Ok(known.upgrade().unwrap_or_else(|| {
            let place = Arc::new(Self::default());
            *known = Arc::downgrade(&place);
            place
        }))
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<Weak<Session>>> {
        // Nothing panics while it is held.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn join(&self, session: &Arc<Session>) {
        let mut sessions = self.sessions();
        sessions.retain(|other| other.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    /// Wakes those of the other sessions who wait in this queue.
    pub(crate) fn ring(&self, by: &Session, name: &LockName) {
        let others: Vec<_> = self.sessions().iter().filter_map(Weak::upgrade).collect();
        others.iter().filter(|other| other.id != by.id).for_each(|other| other.ring(name));
    }
}
