//! What the clients of one database share within a process.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use lock_core::LockName;

use crate::session::Session;
#[cfg(feature = "sqlite")]
use crate::wire::turns::Turns;

type Places = HashMap<String, Weak<Place>>;

/// A database.
#[derive(Debug)]
pub(crate) struct Place {
    /// Where there is one writer, all clients of the process take turns.
    #[cfg(feature = "sqlite")]
    pub(crate) turns: Turns,
    sessions: Mutex<Vec<Weak<Session>>>,
}

impl Place {
    /// The database that is called so.
    pub(crate) fn of(database: String) -> Arc<Self> {
        static PLACES: LazyLock<Mutex<Places>> = LazyLock::new(Mutex::default);
        // Nothing panics while it is held.
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| place.strong_count() > 0);
        let known = places.entry(database).or_default();
        known.upgrade().unwrap_or_else(|| {
            let place = Arc::new(Self {
                #[cfg(feature = "sqlite")]
                turns: Turns::new(crate::wire::sqlite::PLACES),
                sessions: Mutex::default(),
            });
            *known = Arc::downgrade(&place);
            place
        })
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

    /// Wakes those of the other sessions who wait in this queue: the first of them, who wakes the
    /// next one if he holds the lock together with others.
    pub(crate) fn ring(&self, by: &Session, name: &LockName) {
        let sessions: Vec<_> = self.sessions().iter().filter_map(Weak::upgrade).collect();
        let first =
            |session: &&Arc<Session>| session.book().first_waiting(name).unwrap_or(u64::MAX);
        let first = sessions.iter().min_by_key(first).map(|session| session.id);
        for session in sessions.iter().filter(|session| session.id != by.id) {
            match Some(session.id) == first {
                true => session.ring(name),
                false => session.heard(name),
            }
        }
    }
}
