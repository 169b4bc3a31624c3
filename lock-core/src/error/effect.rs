//! What a failed request may have done.

/// Whether a failed request may have changed the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// The store did not act. Trying again is safe.
    None,
    /// No answer came. The request may have taken effect, or may do so later. Drivers resolve this
    /// themselves: they remove the traces of such a request in the background.
    Unknown,
}

impl Effect {
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Unknown => " (it may have taken effect)",
        }
    }
}
