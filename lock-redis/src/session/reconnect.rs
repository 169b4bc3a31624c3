//! Connects a client, and connects it again.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join;
use lock_core::{Clock, keep::backoff::Backoff, trace};
use redis::{RedisError, cmd};
use tokio::time::timeout;

use super::{
    Routes, Session, description,
    node::{Link, Node},
};
use crate::{
    error::{self, STORE},
    layout::key::{client_key, floor},
    wire::connection::Connection,
};

/// Time limit of the question whether the server takes writes.
const WRITE_LIMIT: Duration = Duration::from_secs(1);
/// A connection that answers nothing for this long, though attempts rely on its pushes, is asked
/// whether it still lives: the next renewal may be hours away.
const PROBE_PERIOD: Duration = Duration::from_secs(10);
/// Time limit of that question.
const PROBE_LIMIT: Duration = Duration::from_secs(3);
/// Pauses between attempts to connect.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), LONGEST);
const LONGEST: Duration = Duration::from_secs(1);

impl Session {
    /// Connects a node, and renews on it at once: anything may have changed meanwhile.
    pub(super) async fn connect(self: &Arc<Self>, node: &Arc<Node>) -> Result<(), RedisError> {
        let (session, of) = (Arc::downgrade(self), Arc::downgrade(node));
        let on_push = move |number, info| {
            if let (Some(session), Some(node)) = (session.upgrade(), of.upgrade()) {
                session.pushed(&node, number, info);
            }
        };
        let connection = node.connect(on_push).await?;
        let describe = async {
            if self.is_home(node) {
                self.describe(&connection).await;
            }
        };
        // In one flight.
        Box::pin(join(self.takes_writes(&connection), describe)).await.0?;
        self.check_all(node);
        match node.meets(&connection) {
            true => self.taken_over(node),
            // A node of a cluster got slots, and did not take over.
            false if matches!(self.routes, Routes::Slots(_)) && !connection.info.is_replica() => {
                self.settle(node);
            }
            false => {}
        }
        node.up(connection);
        self.observers.hint_all(|lock| Arc::ptr_eq(&self.routes.of(lock), node));
        self.book().attempts.all_due(Clock::Boot.now());
        self.alarm.notify_one();
        Ok(())
    }

    /// Refuses a replica: an address may lead to the primary later. It changes nothing, since the
    /// record of the token floor never expires. In a cluster, the owners of slots are primaries.
    async fn takes_writes(&self, connection: &Connection) -> Result<(), RedisError> {
        if self.config.is_cluster() {
            return Ok(());
        }
        let write = cmd("PERSIST").arg(floor(&self.config.prefix)).take();
        match connection.call(&write.into(), WRITE_LIMIT).await {
            Err(error) if error::is_broken(&error) || error::is_elsewhere(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether this node keeps the description of this client.
    fn is_home(&self, node: &Arc<Node>) -> bool {
        Arc::ptr_eq(&self.routes.of(&client_key(&self.id)), node)
    }

    /// Keeps a node connected from now on.
    pub(super) fn keep_connected(self: &Arc<Self>, node: &Arc<Node>) {
        tokio::spawn(keep_connected(Arc::downgrade(self), node.clone()));
    }
}

/// Connects a node again whenever its connection is lost, until it is closed, or the session is
/// gone. Pauses grow until a connection has served: one on which every request fails is no better
/// than none.
async fn keep_connected(session: Weak<Session>, node: Arc<Node>) {
    let (mut pause, mut link) = (BACKOFF, node.link());
    let mut was_up = matches!(node.state(), Link::Up(_));
    let (mut described, mut heard, mut since) = (Clock::Boot.now(), None, Clock::Boot.now());
    loop {
        let lost = link.wait_for(|link| !matches!(link, Link::Up(_)));
        // The end of the session closes its nodes.
        let _ = timeout(PROBE_PERIOD, lost).await;
        if std::mem::take(&mut was_up) && matches!(node.state(), Link::Down(..)) {
            if let Some(session) = session.upgrade() {
                session.routes.suspect();
            }
            // One that lasts is no storm, though an idle client asks nothing on it.
            match node.has_served() || Clock::Boot.now().since(since) >= LONGEST {
                true => pause = BACKOFF,
                false => pause_at(&node, &mut pause).await,
            }
        }
        let Some(session) = session.upgrade() else { return };
        if node.is_retired() {
            return;
        }
        match node.state() {
            Link::Closed => return,
            Link::Up(connection) => {
                was_up = true;
                let now = Clock::Boot.now();
                if now.since(described) >= description::PERIOD && session.is_home(&node) {
                    session.describe(&connection).await;
                    described = now;
                }
                let answers = Some((connection.number, connection.answers()));
                if std::mem::replace(&mut heard, answers) == answers && session.has_any_at(&node) {
                    drop(session);
                    drop(node.ask(cmd("PING"), PROBE_LIMIT).await);
                }
            }
            Link::Down(..) => {
                let reconnected = tokio::select! {
                    reconnected = session.connect(&node) => reconnected,
                    // Another server takes over: the one that is dialled may never answer.
                    () = node.hurry.notified() => {
                        pause = BACKOFF;
                        continue;
                    }
                };
                match reconnected {
                    Ok(()) => {
                        trace::connected(STORE);
                        session.reach.works();
                        (was_up, since) = (true, Clock::Boot.now());
                    }
                    Err(error) => {
                        node.stays_down(error);
                        // The next renewal that is sent there begins anew.
                        let given_up = Clock::Boot.now().since(since) >= PROBE_PERIOD;
                        if given_up
                            && matches!(&session.routes, Routes::Slots(s) if s.forget(&node))
                        {
                            return;
                        }
                        drop(session);
                        pause_at(&node, &mut pause).await;
                    }
                }
            }
        }
    }
}

/// Pauses before the next attempt to connect, unless another server takes over.
async fn pause_at(node: &Node, pause: &mut Backoff) {
    tokio::select! {
        () = pause.wait() => {}
        () = node.hurry.notified() => *pause = BACKOFF,
    }
}
