//! Renewal while a slot of a cluster moves.
//!
//! Then each key is at one of two nodes, and no script with several keys runs. A lock that is held
//! alone is one key, which is renewed wherever it is. All else waits until the slot has moved.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::Clock;
use redis::{Cmd, RedisError, Value};

use super::{Routes, Session, attempt::Attempt, node::Link};
use crate::{
    config::Address,
    error,
    wire::{answer, failure::Failure, script, slots},
};

impl Session {
    /// Renews locks that are held alone, each by a request of its own.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub(super) async fn renew_each(&self, alone: &[&Arc<Attempt>]) -> Result<(), Failure> {
        let renewed = alone.iter().map(|attempt| self.renew_one(attempt));
        join_all(renewed).await.into_iter().collect()
    }

    async fn renew_one(&self, attempt: &Attempt) -> Result<(), Failure> {
        let command = script::keep(attempt.member());
        let (sent, limit) = (Clock::Boot.now(), attempt.patience());
        let answer = match self.call(&command, limit).await {
            Err(Failure::Refused(error)) => self.call_target(&command, &error, limit).await?,
            answer => answer?,
        };
        if let Some(renewed) = answer::int(&answer) {
            attempt.renewed_alone(sent, renewed == 1);
        }
        Ok(())
    }

    /// Sends a command to the node to which an error says that its slot moves.
    async fn call_target(
        &self,
        command: &Cmd,
        said: &RedisError,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let refused = || Failure::Refused(said.clone());
        let (Routes::Slots(slots), Some((to, _))) = (&self.routes, said.redirect_node()) else {
            return Err(refused());
        };
        let from = match self.routes.of_command(command).state() {
            Link::Up(connection) => connection.address,
            _ => Address::new("", 0),
        };
        let node = slots::target(to, &from).and_then(|address| slots.node_at(&address));
        let node = node.ok_or_else(refused)?;
        let connection = node.connection()?;
        let answer = match error::is_moving(said) {
            true => connection.call_asking(command, limit).await,
            false => connection.call(command, limit).await,
        };
        node.judge(&connection, answer)
    }
}
