//! The traffic that passes a proxy.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// The state of the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Cut,
    /// Requests pass, replies do not.
    HalfOpen,
    Open,
    /// There is no listener.
    Refuse,
}

impl Mode {
    pub(super) fn lets_pass(self, direction: Direction) -> bool {
        match self {
            Self::Cut | Self::Refuse => false,
            Self::HalfOpen => direction == Direction::Up,
            Self::Open => true,
        }
    }
}
