//! A private network, in which places can be cut off from each other.

mod cuts;
mod namespace;
mod place;
mod router;
mod side;
mod trial;

use std::sync::{Arc, OnceLock};

use self::{cuts::Cuts, router::Router};
pub(crate) use self::{namespace::Namespace, place::Node};
pub use self::{
    place::Place,
    side::Side,
    trial::{network_trial, run_network_tests},
};
use crate::LabError;

/// A private IPv4 network of network namespaces: each server and each [`Side`] has a namespace of
/// its own, and a router in the middle drops the packets that a cut forbids.
///
/// It has no link to the outside, and its addresses are valid only inside, so any number of
/// networks exist at once. A clone is the same network.
///
/// Each operation changes all its pairs at one instant, some 10 ms after the call on an idle
/// machine, also on open connections. Dropped packets are gone, without a reset and without a
/// refusal, and TCP sends them again after a [`heal`](Self::heal). The operations block the thread
/// until they are in force.
///
/// The lab asks its servers from a place without cuts.
///
/// # What stays behind
///
/// Nothing: the namespaces have no names. The kernel removes them with the last process and the
/// last handle, also if this process is killed.
#[derive(Clone, Debug)]
pub struct Network {
    router: Arc<Router>,
    /// The place from which the lab asks its servers.
    control: Arc<Side>,
}

impl Network {
    /// Makes an empty network.
    pub fn new() -> Result<Self, LabError> {
        let router = Arc::new(Router::new().map_err(LabError::no_network)?);
        let node = router.join().map_err(LabError::no_network)?;
        router.spare(node.place()).map_err(LabError::no_network)?;
        let control = Arc::new(Side::start(node, Arc::clone(&router))?);
        Ok(Self { router, control })
    }

    /// Checks that this machine permits networks: makes one, once per process.
    ///
    /// Tests that need a network use [`network_tests!`](crate::network_tests), which calls this.
    pub fn available() -> Result<(), LabError> {
        static FAULT: OnceLock<Option<String>> = OnceLock::new();
        let fault = FAULT.get_or_init(|| match Self::new() {
            Ok(_) => None,
            Err(LabError::NoNetwork { why }) => Some(why),
            Err(error) => Some(error.to_string()),
        });
        fault.clone().map_or(Ok(()), |why| Err(LabError::NoNetwork { why }))
    }

    /// Makes a place for clients, with a thread and a runtime of its own.
    ///
    /// A network has at most 250 places.
    pub fn side(&self) -> Result<Side, LabError> {
        Side::start(self.join()?, Arc::clone(&self.router))
    }

    /// Cuts `a` and `b` off from each other, in both directions.
    ///
    /// If the system refuses it, nothing changes. The same holds for all methods that cut and heal.
    pub fn cut(&self, a: Place, b: Place) -> Result<(), LabError> {
        self.split(&[a], &[b])
    }

    /// Cuts each place of `left` off from each of `right`, in both directions.
    pub fn split(&self, left: &[Place], right: &[Place]) -> Result<(), LabError> {
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
        self.change(|cuts| {
            pairs.for_each(|(a, b)| {
                cuts.deafen(a, b);
                cuts.deafen(b, a);
            });
        })
    }

    /// Cuts one direction: `listener` gets no packets of `speaker`, but `speaker` gets those of
    /// `listener`.
    pub fn deafen(&self, listener: Place, speaker: Place) -> Result<(), LabError> {
        self.change(|cuts| cuts.deafen(listener, speaker))
    }

    /// Cuts a place off from all others, also from those made later.
    pub fn isolate(&self, place: Place) -> Result<(), LabError> {
        self.change(|cuts| cuts.isolate(place))
    }

    /// Ends all cuts.
    pub fn heal(&self) -> Result<(), LabError> {
        self.change(Cuts::clear)
    }

    /// Ends the cuts between `a` and `b`, in both directions. An isolated place stays isolated.
    pub fn heal_between(&self, a: Place, b: Place) -> Result<(), LabError> {
        self.change(|cuts| cuts.heal_between(a, b))
    }

    /// Ends all cuts of one place.
    pub fn rejoin(&self, place: Place) -> Result<(), LabError> {
        self.change(|cuts| cuts.rejoin(place))
    }

    pub(crate) fn join(&self) -> Result<Node, LabError> {
        self.router.join().map_err(LabError::io("making a place in a network"))
    }

    pub(crate) fn control(&self) -> &Side {
        &self.control
    }

    fn change(&self, change: impl FnOnce(&mut Cuts)) -> Result<(), LabError> {
        self.router.change(change).map_err(LabError::io("cutting a network"))
    }
}
