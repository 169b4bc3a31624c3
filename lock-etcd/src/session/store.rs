//! The state that all parts of one client share.

use std::sync::Arc;

use lock_core::{LossReason, keep::share::Shared};
use tokio::{runtime::Handle, sync::Mutex, task::JoinHandle};

use crate::{
    election::observers::Last,
    layout::keys::{Keys, Slots},
    queue::watcher::Watcher,
    session::pool::Sessions,
    wire::connection::Connection,
};

/// One client's connection, sessions and watches.
pub(crate) struct Store {
    pub(crate) layout: Keys,
    pub(crate) connection: Arc<Connection>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) watcher: Arc<Watcher>,
    /// The last reads of the names that are observed.
    pub(crate) observed: Shared<Arc<str>, Mutex<Last>>,
    pub(crate) runtime: Handle,
}

impl Store {
    /// The state of a new client, whose tasks run where this is called. `probe` ends when the lease
    /// that connecting needed is revoked.
    pub(crate) fn new(layout: Keys, connection: Connection, probe: JoinHandle<()>) -> Arc<Self> {
        let connection = Arc::new(connection);
        let store = Arc::new(Self {
            slots: Arc::new(Slots::default()),
            sessions: Arc::new(Sessions::new(&layout, connection.clone(), probe)),
            watcher: Arc::new(Watcher::new(connection.clone())),
            observed: Default::default(),
            connection,
            layout,
            runtime: Handle::current(),
        });
        let weak = Arc::downgrade(&store);
        store.connection.revisions.set_owner(store.layout.floor(), move || {
            let _ = weak.upgrade().map(|store| store.forget());
        });
        store
    }

    /// Forgets all that is known of the store, which has gone back to an earlier state. The task
    /// that finds out does so before its caller learns the answer.
    fn forget(&self) {
        for session in self.sessions.all() {
            self.sessions.end(&session, LossReason::Restored);
        }
        self.watcher.names().forget_all();
    }
}
