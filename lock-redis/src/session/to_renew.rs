//! The attempts that are due for renewal at one node.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use lock_core::{Instant, keep::poison::lock};
use uuid::Uuid;

use super::attempt::{Attempt, Role};

/// The most that one request renews, counted in locks that are held alone. The server does nothing
/// else meanwhile, for one to three milliseconds.
const CHUNK: usize = 1000;
/// Every other attempt counts as this many of these.
const OTHER: usize = 5;

/// The attempts that are due at a node. One task at a time renews them, so a node that does not
/// answer holds up its own attempts and no others.
#[derive(Debug, Default)]
pub(super) struct ToRenew(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    attempts: BTreeMap<Order, Arc<Attempt>>,
    orders: HashMap<Uuid, Order>,
    added: u64,
    is_renewing: bool,
}

/// Whether it waits, and its number: holders come first, whatever else is due. A lock that falls due
/// while a crowd of waiters is renewed is in the next request.
type Order = (bool, u64);

impl ToRenew {
    /// Adds an attempt. Returns whether the caller must start a task that [takes](Self::take).
    #[must_use]
    pub(super) fn add(&self, attempt: Arc<Attempt>) -> bool {
        let waits = attempt.is_waiting();
        let mut state = lock(&self.0);
        let known = state.orders.get(&attempt.id).copied();
        // One that waited, and holds now, does not stay behind those that wait.
        if known.is_none_or(|(waited, _)| waited && !waits) {
            known.map(|order| state.attempts.remove(&order));
            state.added += 1;
            let order = (waits, state.added);
            state.orders.insert(attempt.id, order);
            state.attempts.insert(order, attempt);
        }
        !std::mem::replace(&mut state.is_renewing, true)
    }

    /// Takes the attempts of the next request, with their roles. After `None` the task has ended,
    /// and the next one is another.
    pub(super) fn take(&self, now: Instant) -> Option<Vec<(Role, Arc<Attempt>)>> {
        let mut state = lock(&self.0);
        let (mut taken, mut room) = (Vec::new(), CHUNK);
        while let Some(first) = state.attempts.first_entry() {
            let role = first.get().role(now);
            let weight = match role {
                None => 0,
                Some(Role::Holds) => 1,
                Some(Role::Shares | Role::Waits) => OTHER,
            };
            if weight > room {
                break;
            }
            room -= weight;
            let attempt = first.remove();
            state.orders.remove(&attempt.id);
            taken.extend(role.map(|role| (role, attempt)));
        }
        state.is_renewing = !taken.is_empty();
        state.is_renewing.then_some(taken)
    }

    /// Forgets what is due: the node does not answer, and all of it will be due again soon.
    pub(super) fn clear(&self) {
        let mut state = lock(&self.0);
        state.attempts.clear();
        state.orders.clear();
    }
}
