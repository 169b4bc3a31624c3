//! The middle of a network.

use std::{
    fs, io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    cuts::Cuts,
    namespace::Namespace,
    place::{Node, Place},
};

const ROOM: u8 = 250;

/// A namespace that forwards packets between the places. It drops the packets that a cut forbids,
/// for all pairs at one instant: the filter is one table that is replaced as a whole.
#[derive(Debug)]
pub(super) struct Router {
    namespace: Namespace,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    places: u8,
    cuts: Cuts,
}

impl Router {
    pub(super) fn new() -> io::Result<Self> {
        let namespace = Namespace::new()?;
        namespace.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        Ok(Self { namespace, state: Mutex::default() })
    }

    /// Makes a place, with a link to the router.
    pub(super) fn join(&self) -> io::Result<Node> {
        let number = self.next_number()?;
        let (place, namespace) = (Place::number(number), Namespace::new()?);
        let (router, peer) = (Place::ROUTER, namespace.path());
        // Names of links do not clash: they belong to the namespace.
        self.ip(&format!(
            "link add v{number} type veth peer name eth0 netns {peer}\n\
             addr add {router}/32 dev v{number}\nlink set v{number} up\n\
             route add {place}/32 dev v{number}\n"
        ))?;
        let node = Node { place, namespace };
        let inner = format!(
            "link set lo up\naddr add {place}/32 dev eth0\nlink set eth0 up\n\
             route add {router}/32 dev eth0\nroute add default via {router} src {place}\n"
        );
        node.namespace.feed("ip", &["-batch", "-"], &inner)?;
        Ok(node)
    }

    /// Exempts a place from all cuts.
    pub(super) fn spare(&self, place: Place) -> io::Result<()> {
        self.change(|cuts| cuts.spare(place))
    }

    /// Changes the cuts, and returns when they are in force.
    pub(super) fn change(&self, change: impl FnOnce(&mut Cuts)) -> io::Result<()> {
        let mut state = self.state();
        let mut cuts = state.cuts.clone();
        change(&mut cuts);
        if cuts != state.cuts {
            self.namespace.feed("iptables-restore", &["-w"], &cuts.rules())?;
            state.cuts = cuts;
        }
        Ok(())
    }

    fn next_number(&self) -> io::Result<u8> {
        let mut state = self.state();
        if state.places == ROOM {
            return Err(io::Error::other(format!("a network has room for {ROOM} places")));
        }
        state.places += 1;
        Ok(state.places)
    }

    fn ip(&self, lines: &str) -> io::Result<()> {
        self.namespace.feed("ip", &["-batch", "-"], lines)
    }

    /// A panic elsewhere cannot leave a half-done change here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
