//! Finds out whether the member lives while it does not answer a request.

use std::sync::Arc;

use lock_core::Clock;

use crate::{
    session::pool::Sessions,
    wire::{connection::Connection, requests::check_login},
};

/// Has a keep-alive sent for each late request, as long as it is polled.
pub(crate) async fn run(sessions: Arc<Sessions>) {
    let connection = &sessions.connection;
    loop {
        connection.health.late.notified().await;
        // A denied session sends its keep-alives later, and gets no answer that counts.
        match sessions.all().iter().find(|session| session.stood_still()) {
            Some(session) => session.hurry(),
            None => drop(tokio::spawn(ask(connection.clone()))),
        }
    }
}

/// Asks the member, for a client that has nothing to renew now.
async fn ask(connection: Arc<Connection>) {
    let member = connection.member();
    let answer = Clock::Boot.timeout(connection.limits.request / 2, check_login(&member)).await;
    if matches!(answer, Some(Ok(()))) && connection.member().generation == member.generation {
        connection.health.lives();
    }
}
