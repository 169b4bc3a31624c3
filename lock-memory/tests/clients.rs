//! Clients of a store, as most tests use them.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

use lock_core::{LockName, Locks};
use lock_memory::{Faults, MemoryStore};

pub fn locks(store: &MemoryStore) -> Locks {
    client(store).0
}

pub fn client(store: &MemoryStore) -> (Locks, Faults) {
    let client = store.client();
    let faults = client.faults();
    (Locks::new(client), faults)
}

pub fn name(name: &str) -> LockName {
    LockName::new(name).unwrap()
}

pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}
