//! The places in a network.

use std::{fmt, net::Ipv4Addr};

use super::Namespace;

/// The place of a server or a [`Side`](crate::Side) in its [`Network`](crate::Network): the unit
/// that is cut and healed.
///
/// It is an address, which is valid only within the network.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Place(Ipv4Addr);

impl Place {
    /// The address of the router on each link.
    pub(super) const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 96, 255, 254);

    /// The place with this number, from 1.
    pub(super) fn number(number: u8) -> Self {
        Self(Ipv4Addr::new(10, 96, 0, number))
    }

    /// Returns its address, the same for all its ports.
    pub fn ip(self) -> Ipv4Addr {
        self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place with its namespace, which lives as long as this value or a process in it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(super) place: Place,
    pub(super) namespace: Namespace,
}

impl Node {
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}
