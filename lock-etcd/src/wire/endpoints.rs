//! The order in which the members of the cluster are tried.

use std::sync::{Arc, Mutex};

use lock_core::keep::poison::lock;

use uuid::Uuid;

/// The endpoints in the order of tries. Each client shuffles them, so that many clients with the
/// same URL spread over the members. An endpoint that failed is tried last.
pub(crate) struct Endpoints(Mutex<Vec<Arc<str>>>);

impl Endpoints {
    /// Puts endpoints in random order.
    pub(crate) fn shuffled(endpoints: &[String]) -> Self {
        let mut endpoints: Vec<Arc<str>> = endpoints.iter().map(|e| Arc::from(&**e)).collect();
        // A UUID is the random number at hand.
        endpoints.sort_by_cached_key(|_| Uuid::new_v4());
        Self(Mutex::new(endpoints))
    }

    /// Returns all endpoints in the order of tries.
    pub(crate) fn to_try(&self) -> Vec<Arc<str>> {
        lock(&self.0).clone()
    }

    /// Moves a failed endpoint to the end.
    pub(crate) fn failed(&self, endpoint: &Arc<str>) {
        let mut order = lock(&self.0);
        if let Some(at) = order.iter().position(|known| Arc::ptr_eq(known, endpoint)) {
            order[at..].rotate_left(1);
        }
    }

    /// Whether there is only one endpoint.
    pub(crate) fn is_one(&self) -> bool {
        lock(&self.0).len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Endpoints {
        Endpoints::shuffled(&["a:1", "b:1", "c:1"].map(String::from))
    }

    #[test]
    fn a_failed_endpoint_is_tried_last() {
        let endpoints = three();
        let before = endpoints.to_try();
        endpoints.failed(&before[0]);
        assert_eq!(endpoints.to_try(), [&before[1], &before[2], &before[0]].map(Arc::clone));
        endpoints.failed(&before[2]);
        assert_eq!(endpoints.to_try(), [&before[1], &before[0], &before[2]].map(Arc::clone));
    }

    #[test]
    fn clients_differ_in_the_endpoint_that_they_try_first() {
        let first = |_| three().to_try()[0].clone();
        let mut firsts: Vec<_> = (0..100).map(first).collect();
        firsts.sort();
        firsts.dedup();
        assert_eq!(firsts.len(), 3);
    }
}
