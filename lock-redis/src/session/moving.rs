//! Renewal while a slot of a cluster moves.
//!
//! Then each key is at one of two nodes, and no script with several keys runs. So nothing changes
//! what the keys of a name say together, and each key can be renewed by itself, wherever it is: an
//! attempt lives on when it is renewed in each key that must have it. It does not matter how the
//! keys of the name are split. Grants, releases and conversions wait until the slot has moved.

use std::{sync::Arc, time::Duration};

use futures_util::future::{join, join_all};
use lock_core::Clock;
use redis::{RedisError, Value};

use super::{
    Routes, Session,
    attempt::{Attempt, Role},
    node::Node,
};
use crate::{
    error,
    wire::{answer, failure::Failure, script, slots},
};

impl Session {
    /// Renews attempts, each by requests of its own.
    ///
    /// # Errors
    ///
    /// The first failure; `why` if an attempt is not where it should be, and the keys may tell more
    /// when they are together again.
    pub(super) async fn renew_each<'a>(
        self: &Arc<Self>,
        attempts: impl Iterator<Item = &'a Attempt>,
        why: &RedisError,
    ) -> Result<(), Failure> {
        let renewed = attempts.map(|attempt| self.renew_one(attempt));
        for found in join_all(renewed).await {
            if !found? {
                return Err(Failure::Refused(why.clone()));
            }
        }
        Ok(())
    }

    /// Returns whether the attempt was found, or is known to be lost.
    async fn renew_one(self: &Arc<Self>, attempt: &Attempt) -> Result<bool, Failure> {
        let sent = Clock::Boot.now();
        match attempt.role(sent) {
            Some(Role::Holds) => {
                let mine = is_one(&self.renew_key(attempt, "mine", None).await?);
                attempt.renewed_alone(sent, mine);
                Ok(true)
            }
            Some(Role::Shares) => {
                let found = self.keep_shared(attempt).await?;
                if found {
                    attempt.renewed_alone(sent, true);
                }
                Ok(found)
            }
            Some(Role::Waits) => {
                let found = is_one(&self.renew_key(attempt, "waiting", None).await?);
                if found {
                    self.ask(attempt, attempt.kept_waiting(sent));
                }
                Ok(found)
            }
            // It has ended, or was granted, meanwhile.
            None => Ok(true),
        }
    }

    /// Renews an attempt that may hold beside others. A member of a group must be in all three keys
    /// of the group; each of them names the group, or the member.
    async fn keep_shared(self: &Arc<Self>, attempt: &Attempt) -> Result<bool, Failure> {
        let lock = self.renew_key(attempt, "lock", None).await?;
        let Some(group) = answer::bytes(&lock) else {
            let mine = is_one(&lock);
            if mine && attempt.leads {
                // Without its value it leads all the same.
                self.renew_key(attempt, "leader", None).await?;
            }
            return Ok(mine);
        };
        let members = self.renew_key(attempt, "members", Some(&group));
        let (members, holders) =
            Box::pin(join(members, self.renew_key(attempt, "holders", None))).await;
        Ok(is_one(&members?) && is_one(&holders?))
    }

    /// Renews an attempt in one key, which is at one of two nodes.
    async fn renew_key(
        self: &Arc<Self>,
        attempt: &Attempt,
        what: &str,
        group: Option<&[u8]>,
    ) -> Result<Value, Failure> {
        let mut request = script::renew_key(attempt.renewal(), what, group);
        let limit = attempt.patience();
        let answer = match self.call(&request, None, limit).await {
            Err(Failure::Refused(moved)) => {
                let node = self.target(request.key, &moved, limit).await?;
                request.call.asking = error::is_moving(&moved);
                self.call(&request, Some(&node), limit).await?
            }
            answer => answer?,
        };
        // Without enough replicas, bad news counts, and good news does not.
        answer.counted(&request)
    }

    /// Returns the node to which an error says that a key's slot moves, and connects it first.
    ///
    /// # Errors
    ///
    /// That error, if it names no node.
    async fn target(
        self: &Arc<Self>,
        key: &[u8],
        moved: &RedisError,
        limit: Duration,
    ) -> Result<Arc<Node>, Failure> {
        let refused = || Failure::Refused(moved.clone());
        let (Routes::Slots(slots), Some((to, _))) = (&self.routes, moved.redirect_node()) else {
            return Err(refused());
        };
        let from = self.routes.of(key).connection();
        let from = from.map(|connection| connection.address.host.clone()).unwrap_or_default();
        let address = slots::target(to, &from).ok_or_else(refused)?;
        if let Some(node) = slots.node_at(&address) {
            return Ok(node);
        }
        let (node, is_new) = slots.guest(&address);
        if is_new {
            self.keep_connected(&node);
        }
        node.until_up(limit, None).await;
        Ok(node)
    }
}

fn is_one(answer: &Value) -> bool {
    answer::int(answer) == Some(1)
}
