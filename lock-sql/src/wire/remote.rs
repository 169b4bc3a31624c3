//! A client's connections to a server, of either kind.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::Attempt;

#[cfg(feature = "postgres")]
use crate::{error, wire::failure::Failure, wire::postgres::doubts::Pushes};
use crate::{
    layout::dialect::Dialect,
    wire::{
        connections::{Connections, Link},
        database::{Answer, Database},
        limit::Limit,
        own_client::Way,
        turns::{SEATS, Turn, Turns},
    },
};

/// One client's connections to a server.
pub(crate) struct Remote<C: Link> {
    /// The server and the database, as this client names them; `None` if the server pushes.
    address: Option<String>,
    turns: Turns,
    connections: Arc<Connections<C>>,
    #[cfg(feature = "postgres")]
    pub(super) pushes: Option<Pushes>,
}

impl<C: Link> Remote<C> {
    /// Sends nothing yet.
    pub(super) fn by(address: Option<String>, way: Way<C>) -> Self {
        Self {
            address,
            turns: Turns::new(SEATS),
            connections: Connections::new(way, SEATS),
            #[cfg(feature = "postgres")]
            pushes: None,
        }
    }
}

#[async_trait]
impl<C: Link> Database for Remote<C> {
    fn dialect(&self) -> Dialect {
        C::DIALECT
    }

    fn turns(&self) -> &Turns {
        &self.turns
    }

    async fn execute(
        &self,
        script: &str,
        limit: &Limit,
        turn: Turn,
        caller: Option<&Attempt>,
    ) -> Answer {
        let answer = self.connections.run(script, limit, turn, caller).await;
        #[cfg(feature = "postgres")]
        if let Some(pushes) = &self.pushes
            && answer.as_ref().is_err_and(|failure| match failure {
                Failure::Lost(_) => true,
                Failure::Refused(why) => error::is_read_only(C::DIALECT, why),
                _ => false,
            })
        {
            pushes.doubts.broken.notify_one();
        }
        answer
    }

    fn refuse(&self) {
        self.turns.close();
        self.connections.refuse();
        #[cfg(feature = "postgres")]
        if let Some(task) = self.pushes.as_ref().and_then(|pushes| pushes.task.get()) {
            task.abort();
        }
    }

    async fn quit(&self) {
        self.connections.quit().await;
    }

    fn known_as(&self) -> Option<&str> {
        self.address.as_deref()
    }

    #[cfg(feature = "postgres")]
    fn pushes(&self) -> Option<&Pushes> {
        self.pushes.as_ref()
    }
}

impl<C: Link> Drop for Remote<C> {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// Sets an option that the configuration names.
pub(super) fn set<'a, O, V: ?Sized>(
    options: O,
    value: Option<&'a V>,
    set: impl FnOnce(O, &'a V) -> O,
) -> O {
    match value {
        Some(value) => set(options, value),
        None => options,
    }
}
