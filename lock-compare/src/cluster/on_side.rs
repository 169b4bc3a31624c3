//! Clients on a side of a network.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_lab::Side;

use crate::{Contestant, Failure, Granted, Hold, Nature, Player};

/// A lock with its clients on a side: their requests start there.
#[derive(Clone)]
pub(crate) struct OnSide {
    lock: Arc<dyn Contestant>,
    side: Arc<Side>,
}

impl OnSide {
    pub(crate) fn new(lock: impl Contestant + 'static, side: &Arc<Side>) -> Self {
        Self { lock: Arc::new(lock), side: side.clone() }
    }
}

#[async_trait]
impl Contestant for OnSide {
    fn label(&self) -> String {
        self.lock.label()
    }

    fn nature(&self) -> Nature {
        self.lock.nature()
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        let lock = self.lock.clone();
        let player = self.side.run(async move { lock.client().await }).await?;
        Ok(Arc::new(Client { player, side: self.side.clone() }))
    }
}

struct Client {
    player: Arc<dyn Player>,
    side: Arc<Side>,
}

#[async_trait]
impl Player for Client {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        let (player, name) = (self.player.clone(), name.to_owned());
        let acquire = async move { player.acquire(&name, ttl, wait).await };
        let hold = self.side.run(acquire).await?;
        let side = self.side.clone();
        Ok(hold.map(|hold| Box::new(Held { hold, side }) as Box<dyn Hold>))
    }
}

struct Held {
    hold: Box<dyn Hold>,
    side: Arc<Side>,
}

#[async_trait]
impl Hold for Held {
    fn token(&self) -> Option<u64> {
        self.hold.token()
    }

    fn believes(&self) -> bool {
        self.hold.believes()
    }

    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        let Self { hold, side } = *self;
        side.run(async move { hold.release().await }).await
    }
}
